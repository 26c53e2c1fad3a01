"""Encoders with 8-bit matrices, next to those in float32."""

import sys

import numpy as np
import pytest
from tests.encode.tiny import TEXTS, save_tiny_bert

from counterpoint.encode import DualEncoder, Encoder, Mean, Transformer, WholeWords
from counterpoint.errors import ArtifactError
from counterpoint.index import paths
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.onnx_encoder import open_export, session
from counterpoint.onnx_encoder.kernels import BY_NUMPY, Chooser, compiled_kernels
from counterpoint.onnx_export import export_queries

torch = pytest.importorskip("torch")
QUERIES = [
    "what is a whale?",
    "0-dimensional biomaterials lack inductive properties.",
    "copy a list in Python",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("int8")
    tiny = save_tiny_bert(folder / "tiny")
    heads = {"mean": Mean(normalise=True), "words": WholeWords(normalise=True)}
    Model(DualEncoder(Encoder(Transformer(str(tiny)), heads))).setup().save(folder / "model")
    (folder / "export").mkdir()
    assert "why" not in export_queries(load_model(folder / "model"), folder / "export")
    return folder


def opened(folder, **how):
    load = lambda: load_model(folder / "model")  # noqa: E731
    return open_export(folder / "export", {}, lambda: folder / "model", load, **how)


def test_queries_have_nearly_the_same_vectors_and_the_same_ids(folder):
    exact, fast = opened(folder).encode_query(TEXTS), opened(folder, int8=True).encode_query(TEXTS)
    for name, whole in exact.items():
        np.testing.assert_array_equal(fast[name].offsets, whole.offsets)
        if whole.ids is not None:
            np.testing.assert_array_equal(fast[name].ids, whole.ids)
        cosines = (fast[name].values * whole.values).sum(1)
        assert cosines.min() > 0.99 and (fast[name].values != whole.values).any()


def test_vectors_are_the_same_by_numpy_and_compiled(folder, monkeypatch):
    if paths._loaded() is None:
        pytest.skip("numba is not installed")
    found = []
    for kernels in (BY_NUMPY, compiled_kernels()):
        monkeypatch.setattr(Chooser, "kernels", lambda self, positions, given=kernels: given)
        found.append(opened(folder, int8=True).encode_query(TEXTS))
    for name in found[0]:
        assert found[0][name].values.tobytes() == found[1][name].values.tobytes()


def test_onnx_runtime_is_not_needed(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    assert len(opened(folder, int8=True).encode_query(["a whale"])["mean"].values) == 1
    with pytest.raises(ArtifactError, match="'onnxruntime', which is not installed"):
        opened(folder)


@pytest.mark.minilm
@pytest.mark.slow
def test_the_default_s_queries_turn_by_few_degrees(tmp_path):
    model = load_model("minilm")
    assert "why" not in export_queries(model, tmp_path)
    exact, fast = (
        open_export(tmp_path, {}, lambda: None, lambda: model, int8=int8).encode_query(QUERIES)
        for int8 in (False, True)
    )
    for name in ("mean", "words"):
        assert (fast[name].values * exact[name].values).sum(1).mean() > 0.998
