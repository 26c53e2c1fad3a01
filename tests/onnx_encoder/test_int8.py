"""The graph with 8-bit matrices: an oracle in numpy, and whole encoders next to those in float32."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encode.tiny import TEXTS, save_tiny_bert

from counterpoint.encode import DualEncoder, Encoder, Mean, Transformer, WholeWords
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.onnx_encoder import open_export
from counterpoint.onnx_encoder.int8 import in_8_bits, rounded
from counterpoint.onnx_encoder.session import Session
from counterpoint.onnx_export import export_queries
from counterpoint.onnx_export.graph import Graph

torch = pytest.importorskip("torch")
QUERIES = [
    "what is a whale?",
    "0-dimensional biomaterials lack inductive properties.",
    "copy a list in Python",
]
SHAPES = [(64, 384), (32, 16), (8, 24), (33, 200), (1, 1), (5, 129)]


def product(weights, rows):
    """Rows times a matrix of `rounded`, each row rounded to integers in the same blocks."""
    integers, scales = rounded(weights)
    filled = np.zeros((len(rows), integers.shape[1] * integers.shape[2]), np.float32)
    filled[:, : rows.shape[1]] = rows
    blocks = filled.reshape(len(rows), *integers.shape[1:])
    of_rows = np.abs(blocks).max(2, keepdims=True) / 127
    whole = np.rint(blocks / np.where(of_rows > 0, of_rows, 1))
    sums = np.einsum("nbk,obk->nbo", whole, integers.astype(np.float32) - 128)
    return np.einsum("nbo,nb,ob->no", sums, of_rows[:, :, 0], scales)


@settings(deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 2**32), st.sampled_from([0.0, 1e-20, 1.0, 1e6]))
def test_every_weight_is_within_half_a_step(shape, seed, size):
    weights = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * np.float32(size)
    integers, scales = rounded(weights)
    assert integers.min() >= 1 and np.isfinite(scales).all()
    steps = np.repeat(scales, integers.shape[2], axis=1)[:, : shape[1]]
    found = ((integers.astype(np.float64) - 128) * scales[:, :, None]).reshape(len(weights), -1)
    assert (np.abs(found[:, : shape[1]] - weights) <= 0.5001 * steps).all()
    assert not found[:, shape[1] :].any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_layer_is_what_numpy_computes(shape, count):
    random, graph = np.random.default_rng(1), Graph()
    weights, bias = (torch.from_numpy(random.standard_normal(n, np.float32)) for n in (shape, shape[0]))
    rows = random.standard_normal((count, shape[1]), np.float32)
    named = [graph.weight(each) for each in (weights, bias)]
    graph.output("made", graph.add("Gemm", graph.input("rows", "n", shape[1]), *named, transB=1), shape[0])
    small, rest = in_8_bits(
        graph.serialised(), dict(zip(named, (weights.numpy(), bias.numpy()), strict=True))
    )
    assert list(rest) == named[1:]
    found = Session(small, rest).run({"rows": rows})["made"]
    assert found.shape == (count, shape[0])
    wanted = product(weights.numpy(), rows) + bias.numpy()
    # ONNX Runtime may round the rows in another way on another processor.
    np.testing.assert_allclose(found, wanted, atol=0.02 * np.sqrt(shape[1]))


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
