"""`codec="auto"`: the fewest bytes that keep the ranking of a sample."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from tests.fakes import HashModel, StaticModel
from tests.index.test_resume import HashModelOfCommands, files, interrupted

from counterpoint.cli.main import main
from counterpoint.index import Index, IndexSettings, auto_codec, build_index, progress, stream
from counterpoint.index.auto_codec import AutoCodec, choose_codec
from counterpoint.types import Document

RNG = np.random.default_rng(3)
TEXTS = [" ".join(f"w{n}" for n in RNG.zipf(1.3, 12) % 400) for _ in range(300)]
DOCUMENTS = [Document(f"d{i}", text, title=text[:12] if i % 2 else "") for i, text in enumerate(TEXTS)]


def chosen(model=None, documents=DOCUMENTS, settings=None):
    model = model or HashModel(dim=48)
    vectors = model.encode_document([document.full_text for document in documents])
    return choose_codec(documents, vectors, model, settings or IndexSettings(codec="auto"))


def brute_overlap(one, model):
    """The same share, from the codec's own decoder and plain loops; of pooled vectors."""
    every = model.encode_document([document.full_text for document in DOCUMENTS])["mean"].values
    step = -(-len(DOCUMENTS) // auto_codec.QUERIES)
    kept = every[[i for i in range(len(DOCUMENTS)) if i % step]]
    codec = auto_codec.CODECS[one.codec if "float" in one.codec else "int8"]  # as pooled sets are stored
    decoded = codec.decode(codec.encode(kept), kept.shape[1])
    shares = []
    for document in DOCUMENTS[::step]:
        text = document.title.strip() or document.text
        query = model.encode_query([text])["mean"].values[0]
        best = [set(np.argsort(-(rows @ query), kind="stable")[:10].tolist()) for rows in (kept, decoded)]
        shares.append(len(best[0] & best[1]) / 10)
    return np.mean(shares)


def test_the_fewest_bytes_that_pass_are_chosen():
    found = chosen()
    sizes = [one.bytes for one in found.measured]
    passed = [one for one in found.measured if min(one.overlap.values()) >= auto_codec.OVERLAP]
    assert sizes == sorted(sizes) and found.codec == passed[0].codec
    assert found.measured[-1].codec == "float32" and len(found.measured) == len(auto_codec.CODECS)
    assert found.measured[-1].overlap == {"mean": 1.0, "words": 1.0}
    assert (found.documents, found.queries) == (240, 60)
    assert found == chosen()


@pytest.mark.parametrize("dim, least", [(8, 0.9), (48, 0.9), (48, 0.999)])
def test_what_loses_too_much_is_not_chosen(monkeypatch, dim, least):
    monkeypatch.setattr(auto_codec, "OVERLAP", least)
    found = chosen(HashModel(dim=dim))
    by_name = {one.codec: min(one.overlap.values()) for one in found.measured}
    assert by_name["1-bit"] < by_name["4-bit"] < 1 and by_name[found.codec] >= least
    assert found.codec != "1-bit"


def test_overlap_is_that_of_plain_loops():
    model = HashModel(dim=24)
    found = chosen(model, settings=IndexSettings(codec="auto", sets=("mean",)))
    for one in found.measured:
        brute = brute_overlap(one, model)  # which does not round queries
        assert one.overlap["mean"] == pytest.approx(brute, abs=0.01)


def test_a_small_sample_is_not_compared():
    assert chosen(documents=DOCUMENTS[:255]) == AutoCodec("int8", 255, 0, auto_codec.OVERLAP)
    assert chosen(documents=DOCUMENTS[:256]).queries == 64


def test_sets_without_stored_vectors_are_not_compared():
    only = IndexSettings(codec="auto", sets=("l",))
    assert chosen(StaticModel(), settings=only) == AutoCodec("int8", 300, 0, auto_codec.OVERLAP)
    assert set(chosen(StaticModel()).measured[0].overlap) == {"h"}


def test_an_index_is_built_by_the_choice(tmp_path):
    model = HashModel(dim=48)
    manifest = build_index(DOCUMENTS, model, tmp_path / "auto", IndexSettings(codec="auto"))
    found = chosen()
    assert manifest.settings["codec"] == found.codec == manifest.settings["layouts"]["words"]["codec"]
    with Index(tmp_path / "auto") as index:
        told = index.info()["auto_codec"]
    assert told == json.loads(json.dumps(asdict(found)))
    build_index(DOCUMENTS, model, tmp_path / "named", IndexSettings(codec=found.codec))
    assert files(tmp_path / "auto") == files(tmp_path / "named")
    with Index(tmp_path / "named") as index:
        assert index.info()["auto_codec"] is None


def test_only_the_first_documents_are_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(auto_codec, "FEWEST", 30)
    monkeypatch.setattr("counterpoint.index.writing.SAMPLE", 100)
    monkeypatch.setattr(stream, "BATCH", 40)
    manifest = build_index(DOCUMENTS, HashModel(), tmp_path / "i", IndexSettings(codec="auto"))
    auto = manifest.settings["auto"]
    assert auto["documents"] + auto["queries"] == 120 and manifest.documents == 300


def test_a_choice_stays_when_a_build_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(auto_codec, "FEWEST", 30)
    monkeypatch.setattr("counterpoint.index.writing.SAMPLE", 100)
    monkeypatch.setattr(stream, "BATCH", 40)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    auto = IndexSettings(codec="auto")
    whole = build_index(DOCUMENTS, HashModel(), tmp_path / "whole", auto)
    interrupted(tmp_path / "i", 210, settings=auto, documents=DOCUMENTS)
    monkeypatch.setattr("counterpoint.index.writing.choose_codec", None)  # not asked again
    found = build_index(DOCUMENTS, HashModel(), tmp_path / "i", auto, resume=True)
    assert found.settings["codec"] == whole.settings["codec"]
    assert json.dumps(found.settings) == json.dumps(whole.settings)
    assert files(tmp_path / "i") == files(tmp_path / "whole")


def test_the_command_line_tells_the_choice(tmp_path, monkeypatch, capsys):
    lines = (json.dumps({"_id": d.id, "text": d.text}) for d in DOCUMENTS)
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    monkeypatch.setattr("counterpoint.loading.load_model", lambda name: HashModelOfCommands(48))
    command = ["index", str(tmp_path / "c.jsonl"), "--model", "hash", "--codec", "auto", "-o"]
    assert main([*command, str(tmp_path / "i"), "--json"]) == 0
    streams = capsys.readouterr()
    chosen = json.loads(streams.out)["auto_codec"]["codec"]
    said = f"codec {chosen}: the fewest bytes that keep 85.0 % of the best ten documents (240 documents, 60 q"
    assert said in " ".join(streams.err.split())
    assert main(["info", str(tmp_path / "i")]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    (tmp_path / "c.jsonl").write_text('{"_id": "a", "text": "b"}\n')
    assert main([*command, str(tmp_path / "j")]) == 0
    assert "codec int8, the default: 1 documents are too few" in " ".join(capsys.readouterr().err.split())
