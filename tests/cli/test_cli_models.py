"""The command line with models: found again, refused when wrong, and the default end to end."""

import json
import re
import shutil
import sys
from dataclasses import asdict
from types import SimpleNamespace

import pytest
import torch
from tests.cli.commands import fails
from tests.cli.conftest import DOCUMENTS

from counterpoint.cli.main import main
from counterpoint.encode import DualEncoder, Encoder, Gate, Linear, Transformer, WholeWords
from counterpoint.index import Index, LexicalSettings, keep_search
from counterpoint.model import Model


@pytest.fixture
def indexed(collection, tiny_bert_folder, tmp_path, capsys):
    """An index and its model, side by side."""
    home = tmp_path / "home"
    shutil.copytree(tiny_bert_folder, home / "model")
    assert main(["index", str(collection), "-o", str(home / "index"), "--model", str(home / "model")]) == 0
    capsys.readouterr()
    return home


def test_a_models_folder_is_found_again_after_both_moved(indexed, call, tmp_path):
    code, out, _ = call("search", indexed / "index", "whale", "--json", "--explain")
    before = json.loads(out)["hits"]
    assert code == 0 and len(before) == 4
    moved = tmp_path / "moved"
    indexed.rename(moved)
    code, out, _ = call("search", moved / "index", "whale", "--json", "--explain")
    assert code == 0 and json.loads(out)["hits"] == before
    assert str(tmp_path) not in (moved / "index" / "manifest.json").read_text()


def test_an_index_of_fewer_vectors(collection, gated_model, call, tmp_path):
    index, sizes = ("index", collection, "--model", gated_model[0], "--json"), []
    for number, more in enumerate(((), ("--pool-factor", "2"))):
        assert call(*index, "-o", tmp_path / str(number), *more)[0] == 0
        sizes.append(json.loads(call("info", tmp_path / str(number), "--json")[1])["sets"])
        code, out, _ = call("search", tmp_path / str(number), "whale", "--json", "--explain")
        assert code == 0 and json.loads(out)["hits"]
    before, after = (each["words"]["vectors"] for each in sizes)
    assert before / 2 <= after < before
    assert sizes[1]["words"]["pool_factor"] == 2 and "pool_factor" not in sizes[0]["words"]
    assert fails(call(*index, "-o", tmp_path / "x", "--pool-factor", "0.5"), "greater than or equal to 1")
    assert not (tmp_path / "x").exists()


def test_an_index_with_a_graph(collection, tiny_bert_folder, call, tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    folder, model = tmp_path / "index", tiny_bert_folder
    code, _, _ = call("index", collection, "-o", folder, "--model", model, "--ann", "hnsw", "--json")
    info = json.loads(call("info", folder, "--json")[1])
    assert code == 0 and info["bytes_by_purpose"]["graph: mean"] > 0
    found = [
        json.loads(call("search", folder, "whale", "-w", "dense", "--json", *more)[1])["hits"]
        for more in ((), ("--exhaustive",))
    ]
    assert found[0] and [hit["id"] for hit in found[0]] == [hit["id"] for hit in found[1]]
    evaluate = ("evaluate", collection, "--index", folder, "-w", "dense", "--json")
    measured = json.loads(call(*evaluate)[1])["measures"]
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert fails(call(*evaluate), "faiss-cpu")
    assert fails(call("search", folder, "whale", "-w", "dense"), "[faiss]")
    assert json.loads(call(*evaluate, "--exhaustive")[1])["measures"] == measured


def test_a_model_that_went_elsewhere_can_be_named(indexed, call, tmp_path):
    (indexed / "model").rename(tmp_path / "elsewhere")
    assert fails(call("search", indexed / "index", "whale"), "model")
    code, out, _ = call("search", indexed / "index", "whale", "--json", "--model", tmp_path / "elsewhere")
    assert code == 0 and json.loads(out)["hits"]


def test_another_model_is_refused(indexed, call, tmp_path):
    from tests.encode.tiny import save_tiny_bert

    other = save_tiny_bert(tmp_path / "other", dim=8)
    assert fails(call("search", indexed / "index", "whale", "--model", other), "built with the model")


def test_a_model_without_its_projection_is_refused(collection, tiny_bert_folder, call, tmp_path):
    broken = tmp_path / "colbert"
    shutil.copytree(tiny_bert_folder, broken)
    config = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}))
    target = tmp_path / "index"
    assert fails(call("index", collection, "-o", target, "--model", broken), "linear.weight")
    assert not target.exists()


def test_a_model_that_is_not_there(collection, call, tmp_path):
    assert fails(call("index", collection, "-o", tmp_path / "i", "--model", tmp_path / "nothing"), "nothing")


@pytest.mark.minilm
def test_the_default_model_end_to_end(collection, call, tmp_path):
    folder = tmp_path / "index"
    assert call("index", collection, "-o", folder)[0] == 0
    code, out, _ = call("search", folder, "animals of the ocean", "-k", 1, "--explain", "--json")
    (hit,) = json.loads(out)["hits"]
    assert code == 0 and hit["id"] == "whale"
    assert set(hit["parts"]) == {"lexical", "mean", "words", "feedback"}
    leaves = [leaf for part in hit["explanation"]["children"] for leaf in part.get("children", [part])]
    assert sum(leaf["score"] for leaf in leaves) == pytest.approx(hit["score"], abs=1e-4)
    matched = {leaf["query"]["text"]: leaf["document"]["text"] for leaf in leaves if "document" in leaf}
    assert matched["ocean"] == "sea"
    code, out, _ = call("evaluate", collection, "--index", folder, "--json")
    assert code == 0 and json.loads(out)["measures"]["nDCG@10"] == 1.0
    found = {}
    for feedback in ("0", "0.1,5", "0.5,1"):
        code, out, _ = call(
            "search", folder, "animals of the ocean", "-k", 1, "--feedback", feedback, "--json"
        )
        (found[feedback],) = json.loads(out)["hits"]
        assert code == 0
    assert found["0.1,5"]["parts"] == hit["parts"] and found["0"]["parts"].keys() == hit["parts"].keys() - {
        "feedback"
    }
    assert found["0.5,1"]["parts"]["feedback"] == pytest.approx(
        0.5 / 1.5, abs=1e-5
    )  # the best is like itself
    code, out, _ = call("search", folder, "animals of the ocean", "-k", 1, "--explain=full")
    assert code == 0 and "(like whale)" in out
    code, out, err = call(
        "tune", folder, collection, "--split", "test", "--feedback", "0.3,2", "--grid", "1:1:1"
    )
    assert code == 0, err
    kept = json.loads((folder / "manifest.json").read_text())["settings"]["search"]
    assert (kept["feedback"], kept["feedback_documents"]) == (0.3, 2)


@pytest.mark.minilm
def test_the_demo_answers_three_questions_and_spares_other_indexes(call, tmp_path, monkeypatch):
    from counterpoint import data

    whole = data.open_collection
    with monkeypatch.context() as patched:
        patched.setattr(data, "open_collection", lambda source: whole("stdlib:tempfile"))
        code, out, err = call("demo", "-o", tmp_path / "demo", "-k", 1)
        assert code == 0, err
        assert "tempfile.TemporaryDirectory" in out and out.count("100%") == 3
        assert "\nhow do I make a scratch folder that disappears afterwards?\n" in out
        code, again, err = call("demo", "-o", tmp_path / "demo", "-k", 1)
        assert code == 0 and again == out and "using the index" in err
        keep_search(tmp_path / "demo", {"weights": {"lexical": 1.0}})
        code, out, err = call("demo", "-o", tmp_path / "demo")
        assert code == 2 and out == "" and "has another search than the demo's index" in err
    (tmp_path / "one.jsonl").write_text('{"_id": "a", "title": "", "text": "mine"}\n')
    assert call("index", tmp_path / "one.jsonl", "-o", tmp_path / "mine", "--model", "none")[0] == 0
    assert call("demo", "-o", tmp_path / "mine")[0] == 2
    assert json.loads(call("info", tmp_path / "mine", "--json")[1])["documents"] == 1


@pytest.mark.minilm
def test_an_interrupted_demo_goes_on(call, tmp_path, monkeypatch):
    from counterpoint import data
    from counterpoint.index import stream

    monkeypatch.setattr("counterpoint.index.progress.EVERY", 0)
    monkeypatch.setattr(stream, "BATCH", 8)
    few = list(data.open_collection("stdlib:tempfile").documents())

    def given(documents):
        monkeypatch.setattr(data, "open_collection", lambda _: SimpleNamespace(documents=lambda: documents))
        return call("demo", "-o", tmp_path / "demo", "-k", 1)

    def cut():
        yield from few[:10]
        raise KeyboardInterrupt

    assert given(cut())[0] == 130 and not (tmp_path / "demo" / "manifest.json").exists()
    code, _, err = given(iter(reversed(few)))
    assert code == 2 and "give the same documents" in err and f"delete {tmp_path / 'demo'}" in err
    code, _, err = given(iter(few))
    assert code == 0 and "which has 8 documents" in err
    assert json.loads(call("info", tmp_path / "demo", "--json")[1])["passages"] == len(few)


@pytest.fixture
def gated_model(tiny_bert_folder, tmp_path):
    """A model whose gate lets every word through, and what half of them have less than."""
    torch.manual_seed(4)
    encoder = Encoder(Transformer(str(tiny_bert_folder)), {"words": WholeWords(projection=Linear(4))})
    made = Model(DualEncoder(encoder, gates={"words": Gate()}), search={"weights": {"words": 1.0}}).setup()
    made.eval().save(tmp_path / "gated")
    texts = [f"{title} {text}".strip() for title, text in DOCUMENTS.values()]
    with torch.no_grad():
        weights = made(encoder.tokens(texts, "document"))["words.gate"]
    return tmp_path / "gated", float(weights.values[..., 0][weights.mask].median())


def test_a_gate_that_is_closed_further_makes_a_smaller_index_that_is_still_searched(
    collection, gated_model, call, tmp_path
):
    model, half = gated_model
    counts = {}
    for gate in (None, half):
        folder = tmp_path / f"index-{gate}"
        more = [] if gate is None else ["--gate", gate]
        code, _, _ = call("index", collection, "-o", folder, "--model", model, "--no-lexical", *more)
        assert code == 0
        code, out, _ = call("info", folder, "--json")
        counts[gate] = json.loads(out)["sets"]["words"]["vectors"]
        code, out, _ = call("search", folder, "whale", "--json", "--explain")
        assert code == 0 and json.loads(out)["hits"]
    assert counts[None] > counts[half] > 0


def test_a_gate_that_keeps_nothing_is_refused_with_the_largest_value(collection, gated_model, call, tmp_path):
    model, half = gated_model
    index = ("index", collection, "-o", tmp_path / "i", "--model", model)
    assert fails(call(*index, "--gate", 1e9), "gate 1e+09 keeps no row of 'words' in any of")
    assert not (tmp_path / "i").exists()
    assert call(*index)[0] == 0
    before = (tmp_path / "i" / "manifest.json").read_bytes()
    _, _, err = found = call(*index, "--gate", 1e9, "--overwrite")
    assert fails(found) and (tmp_path / "i" / "manifest.json").read_bytes() == before
    largest = float(re.search(r"the largest value of the gate in \d+ of them is ([\d.]+)\.", err)[1])
    assert largest > half
    assert call(*index, "--gate", largest * 0.999, "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), LexicalSettings(analyzer="simple")),
        (("--k1", 2), LexicalSettings(k1=2.0, analyzer="simple")),
        (("--analyzer", "english"), LexicalSettings()),
    ],
)
def test_bm25_is_as_the_model_proposes_unless_given(
    collection, tiny_bert_folder, call, tmp_path, options, expected
):
    encoder = Encoder(Transformer(str(tiny_bert_folder)), {"words": WholeWords(projection=Linear(4))})
    Model(DualEncoder(encoder), analyzer="simple").setup().eval().save(tmp_path / "model")
    assert call("index", collection, "-o", tmp_path / "i", "--model", tmp_path / "model", *options)[0] == 0
    with Index(tmp_path / "i") as index:
        assert index.manifest.settings["lexical"] == asdict(expected)


def test_a_model_without_a_gate_has_nothing_to_close(collection, tiny_bert_folder, call, tmp_path):
    found = call("index", collection, "-o", tmp_path / "i", "--model", tiny_bert_folder, "--gate", 0.5)
    assert fails(found, "this model has no gate") and not (tmp_path / "i").exists()
    found = call("index", collection, "-o", tmp_path / "i", "--model", "none", "--gate", 0.5)
    assert fails(found, "only BM25 has no gate") and not (tmp_path / "i").exists()
    found = call("index", collection, "-o", tmp_path / "i", "--model", "none", "--codec", "int4")
    assert fails(found, "only BM25 has no vectors") and not (tmp_path / "i").exists()
