"""What encodes an index's queries, and what is told where it is not what was exported."""

import json
import warnings

import pytest
import torch
from tests.fakes import DOCUMENTS

import counterpoint as cp
from counterpoint.encode import DualEncoder, Encoder, Mean, Transformer, WholeWords
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index
from counterpoint.library.stored import encoder_of
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.onnx_encoder import ExportedModel, open_export
from counterpoint.onnx_export import write
from counterpoint.transform import FlowTraining, Nice


@pytest.fixture
def saved(tiny_bert_folder, tmp_path):
    heads = {"mean": Mean(normalise=True), "words": WholeWords()}
    Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads))).setup().save(tmp_path / "model")
    cp.index(DOCUMENTS, tmp_path / "i", model=tmp_path / "model").close()
    return tmp_path


def ranking(notes, query="the quick fox"):
    return [(hit.id, pytest.approx(hit.score, abs=1e-5)) for hit in notes.search(query)]


def test_the_export_is_used_and_ranks_as_torch_does(saved):
    with Index(saved / "i") as index:
        assert isinstance(encoder_of(index), ExportedModel)
        assert isinstance(encoder_of(index, load_model(saved / "model")), ExportedModel)
        assert isinstance(encoder_of(index, backend="torch"), Model)
    with cp.open(saved / "i", backend="onnx") as auto, cp.open(saved / "i", backend="torch") as whole:
        assert ranking(auto) == [(hit.id, hit.score) for hit in whole.search("the quick fox")]
        assert isinstance(auto.model, Model) and auto.model.fingerprint() == whole.model.fingerprint()
        told = auto.info()["model"]["queries"]
    assert told["texts"] > 30 and told["difference"] < 1e-5


def test_a_model_that_was_moved_is_found_by_its_new_name(saved):
    (saved / "model").rename(saved / "elsewhere")
    with Index(saved / "i") as index:
        assert isinstance(encoder_of(index, saved / "elsewhere"), ExportedModel)
        with pytest.raises(ArtifactError):
            encoder_of(index)
        with pytest.raises(ArtifactError):
            encoder_of(index, backend="onnx")


def test_another_model_is_refused_as_without_an_export(saved, tiny_bert_folder):
    other = Model(
        DualEncoder(Encoder(Transformer(str(tiny_bert_folder), layers=1), {"mean": Mean()}))
    ).setup()
    other.save(saved / "other")
    with Index(saved / "i") as index:
        with pytest.raises(ArtifactError, match="built with the model"):
            encoder_of(index, other)
    with cp.open(saved / "i", saved / "other") as notes, pytest.raises(ArtifactError, match="built with"):
        notes.search("fox")


def test_what_cannot_be_exported_is_told_and_encoded_by_torch(tiny_bert_folder, tmp_path):
    encoder = DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), {"mean": Mean()}))
    rows = [torch.randn(200, 16)]
    flow = Nice(16, width=4, fitting=FlowTraining(steps=2)).fit(rows)
    Model(encoder, {"mean": [flow]}).setup().save(tmp_path / "model")
    with cp.index(DOCUMENTS, tmp_path / "i", model=tmp_path / "model") as notes, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert notes.search("fox")
        assert "Nice" in notes.info()["model"]["queries"]["why"]
    assert not list((tmp_path / "i").glob("models/*"))
    for backend in ("onnx", "int8"):
        with pytest.raises(ArtifactError, match="no export of queries: .*Nice"):
            cp.open(tmp_path / "i", backend=backend).search("fox")


def test_a_codec_that_does_not_exist_is_refused(tiny_bert_folder, tmp_path):
    model = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), {"mean": Mean()}))).setup()
    with pytest.raises(ConfigError, match="codec must be auto, float32, .*, 1-bit; found 'bf'"):
        cp.index(DOCUMENTS, tmp_path / "i", model=model, codec="bf")
    assert not (tmp_path / "i").exists()


def test_8_bits_find_the_same_documents_and_their_explanations_sum(saved, call):
    with cp.open(saved / "i", backend="onnx") as exact, cp.open(saved / "i", backend="int8") as fast:
        wanted, found = exact.search("the quick fox"), fast.search("the quick fox", explain=True)
        assert [hit.id for hit in found] == [hit.id for hit in wanted]
        scores = [hit.score for hit in found]
        assert scores == pytest.approx([hit.score for hit in wanted], abs=0.02)
        assert scores != [hit.score for hit in wanted]
        assert [hit.explanation.score for hit in found] == pytest.approx(scores, abs=1e-5)
    code, out, _ = call("search", saved / "i", "the quick fox", "--backend", "int8", "--json")
    assert code == 0 and [hit["score"] for hit in json.loads(out)["hits"]] == pytest.approx(scores, abs=1e-6)


@pytest.mark.parametrize(("near", "kind"), [(0.5, "int8"), (1.1, "onnx")])
def test_8_bits_are_the_default_where_the_export_finds_them_near(
    tiny_bert_folder, tmp_path, monkeypatch, near, kind
):
    monkeypatch.setattr(write, "NEAR", near)
    encoder = DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), {"mean": Mean()}))
    Model(encoder).setup().save(tmp_path / "model")
    cp.index(DOCUMENTS, tmp_path / "i", model=tmp_path / "model").close()
    with Index(tmp_path / "i") as index:
        auto, named = (encoder_of(index, backend=backend) for backend in ("auto", kind))
        assert index.manifest.model["queries"]["bits"] == (8 if kind == "int8" else 32)
        one, other = (each.encode_query(["the quick fox"])["mean"].values for each in (auto, named))
        assert one.tobytes() == other.tobytes()


def test_an_export_of_an_earlier_version_keeps_float32(saved):
    (path,) = (saved / "i").glob("models/*/queries.json")
    said = json.loads(path.read_text())
    assert said.pop("network")["nodes"] and said.pop("bits") == 8
    path.write_text(json.dumps(said))
    model = load_model(saved / "model")
    how = {}, lambda: saved / "model", lambda: model
    assert not open_export(path.parent, *how, int8=None)._int8
    with pytest.raises(ArtifactError, match="of an earlier version.*build the index again"):
        open_export(path.parent, *how, int8=True).encode_query(["fox"])


def test_a_backend_that_does_not_exist_is_refused(saved):
    with pytest.raises(ConfigError, match="one of 'auto', 'int8', 'onnx', 'torch', found 'cuda'"):
        cp.open(saved / "i", backend="cuda").search("fox")


def test_the_shell_tells_what_encodes(saved, call):
    code, out, err = call("info", saved / "i")
    assert code == 0 and "encoded in 8 bits; mean cosine" in out
    weights = saved / "model" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes() + b"\0")
    code, _, err = call("search", saved / "i", "fox", "--backend", "onnx")
    assert code == 2 and "weights.safetensors: is not the file" in err
