"""An export is trusted as far as its files are what they were, and leaves documents to the model."""

import hashlib
import json
import shutil
import threading

import numpy as np
import pytest
from tests.encode.tiny import FP32, TEXTS, save_tiny_bert

from counterpoint.encode import DualEncoder, Encoder, Gate, Mean, Transformer, WholeWords
from counterpoint.errors import ArtifactError
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.onnx_encoder import open_export, session
from counterpoint.onnx_export import export_queries
from counterpoint.onnx_export.parity import difference


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    tiny = save_tiny_bert(folder / "tiny")
    heads = {"mean": Mean(normalise=True), "words": WholeWords()}
    encoder = DualEncoder(Encoder(Transformer(str(tiny)), heads), gates={"words": Gate()})
    Model(encoder).setup().save(folder / "model")
    (folder / "export").mkdir()
    assert "why" not in export_queries(load_model(folder / "model"), folder / "export")
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "made", dirs_exist_ok=True)


def opened(folder, expected=None, full=None, int8=False):
    load = full or (lambda: load_model(folder / "model"))
    return open_export(folder / "export", expected or {}, lambda: folder / "model", load, int8=int8)


def sums(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (folder / "export").iterdir()}


def test_documents_are_the_model_s_and_it_is_loaded_once(folder):
    model, calls = load_model(folder / "model"), []
    found = opened(folder, sums(folder), lambda: calls.append(1) or model)
    found.encode_query(TEXTS)
    found.spans(TEXTS, "words", "document")
    assert not calls
    assert difference(found.encode_document(TEXTS), model.encode_document(TEXTS)) == 0
    np.testing.assert_array_equal(
        found.gate_weights(TEXTS, "words").values, model.gate_weights(TEXTS, "words").values
    )
    assert found.full() is model and calls == [1]


def test_another_model_is_refused(folder, made):
    other = Model(DualEncoder(Encoder(Transformer(str(made / "tiny")), {"mean": Mean()}))).setup()
    with pytest.raises(ArtifactError, match="queries were exported from"):
        opened(folder, full=lambda: other).encode_document(TEXTS)


def test_weights_that_changed_are_found_whatever_their_size_and_time(folder):
    path = folder / "model" / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match="is not the file"):
        opened(folder)
    path.unlink()
    with pytest.raises(ArtifactError, match="cannot be read"):
        opened(folder)


@pytest.mark.parametrize("name", ["queries.json", "queries.onnx"])
def test_a_damaged_export_is_found(folder, name):
    expected = sums(folder)
    path = folder / "export" / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(ArtifactError, match="checksum"):
        opened(folder, expected)
    path.unlink()
    with pytest.raises(ArtifactError, match="cannot be read"):
        opened(folder, expected)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "files": 3}'])
def test_what_is_no_description_is_refused(folder, text):
    (folder / "export" / "queries.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"queries\.json"):
        opened(folder)


def test_a_graph_that_is_none_is_refused(folder):
    (folder / "export" / "queries.onnx").write_bytes(b"no graph")
    with pytest.raises(ArtifactError, match="ONNX Runtime cannot"):
        opened(folder).encode_query(["a"])


def test_a_missing_runtime_is_named(folder, monkeypatch):
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    with pytest.raises(ArtifactError, match="onnxruntime"):
        opened(folder)


def test_the_description_is_plain_data(folder):
    body = json.loads((folder / "export" / "queries.json").read_text())
    assert body["sides"]["query"]["choices"]["words"]["rows"] == "words"
    assert {ref["base"] for ref in body["files"].values()} == {"model"}


@pytest.mark.parametrize("int8", [False, True])
def test_threads_encode_at_once(folder, int8):
    found, texts, made = opened(folder, int8=int8), TEXTS * 5, []
    threads = [threading.Thread(target=lambda: made.append(found.encode_query(texts))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = opened(folder, int8=True) if int8 else load_model(folder / "model")
    wanted = wanted.encode_query(texts) if int8 else wanted.encode_query(texts, FP32)
    bound = 0 if int8 else 1e-5
    assert len(made) == 4 and all(difference(one, wanted) <= bound for one in made)


def test_a_damaged_network_is_refused(folder):
    path = folder / "export" / "queries.json"
    body = json.loads(path.read_text())
    for nodes in ("none", [["Gemm"]], 3):
        path.write_text(json.dumps({**body, "network": {**body["network"], "nodes": nodes}}))
        with pytest.raises(ArtifactError, match=r"queries\.json: cannot be read"):
            opened(folder, int8=True)
