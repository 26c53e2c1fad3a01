"""The benchmark that chooses the default model's weights: values are those of a search by these weights."""

import json
import sys
from argparse import Namespace
from dataclasses import replace

import pytest
from benchmarks.default.weights import kept, main
from safetensors.torch import save_file

from counterpoint.data import open_collection
from counterpoint.errors import ArtifactError
from counterpoint.index import Index, LexicalSettings, build_index
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.search import Searcher, SearchSettings
from counterpoint.types import Document

TEXTS = {
    "whale": "The whale is the largest animal of the sea.",
    "oak": "An oak grows old, and its wood is hard.",
    "sea": "The sea is salt, and animals live there.",
    "ship": "Ships of oak sailed all oceans.",
    "none": "",
}
QUERIES = {
    "a": ("largest creature of the ocean", "whale"),
    "b": ("timber of vessels", "ship"),
    "c": ("", "sea"),
}


@pytest.fixture
def source(tmp_path):
    """A collection of five documents with three training queries."""
    source = tmp_path / "small"
    (source / "qrels").mkdir(parents=True)
    records = {"corpus": TEXTS, "queries": {query: text for query, (text, _) in QUERIES.items()}}
    for kind, texts in records.items():
        lines = [json.dumps({"_id": name, "text": text}) for name, text in texts.items()]
        (source / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
    lines = [f"{query}\t{document}\t1" for query, (_, document) in QUERIES.items()]
    (source / "qrels" / "train.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    return source


@pytest.mark.minilm
@pytest.mark.long
def test_values_are_those_of_a_search_by_these_weights(source, tmp_path, monkeypatch, capsys, default_model):
    values, fed = {}, {}
    for parts, ways in (("lexical mean words", 3), ("mean words", 2), ("lexical mean", 2)):
        steps = len(parts.split()) + 1
        command = ["default_weights.py", source, "--work", tmp_path / "work", "--steps", steps]
        command += ["--json", tmp_path / "found.json", "--parts", *parts.split()]
        command += [] if "words" in parts else ["--at", "lexical=1 mean=3"]
        monkeypatch.setattr(sys, "argv", [str(word) for word in command])
        main()
        saved = json.loads((tmp_path / "found.json").read_text())["small"]
        found, hybrid = saved["shares"], "lexical" in parts
        assert len(found) == ways and set(saved["halves"]) == ({"BM25", "vectors"} if hybrid else set())
        printed = capsys.readouterr().out.splitlines()
        best = printed[-1].removeprefix("chosen: ")
        assert found[best] == max(found.values()) and printed[1].startswith(best)
        assert ("worst" in printed[0]) == hybrid
        if hybrid:
            worst = found[best] - max(saved["halves"].values())
            assert printed[1].split()[-2] == f"{worst:+.4f}"
        values |= found
        fed[parts] = saved["feedback"]
    collection = open_collection(source)
    with Index(tmp_path / "work" / "small") as index:
        for shares, value in values.items():
            weights = {part: float(share) for part, share in (word.split("=") for word in shares.split())}
            assert searched(index, collection, default_model, weights=weights, feedback=0.0) == value
        own = default_model.search["weights"]
        for parts, found in fed.items():
            weights = {part: own[part] for part in parts.split()}
            weights = weights if "words" in parts else {"lexical": 1.0, "mean": 3.0}
            assert len(found) == 19
            for way, value in found.items():
                weight, documents = way.split(" of ")
                how = {"feedback": float(weight), "feedback_documents": int(documents)}
                assert searched(index, collection, default_model, weights=weights, **how) == value


def searched(index, collection, model, **changes):
    """nDCG@10 of the default with other settings."""
    settings = replace(SearchSettings.for_index(index), **changes)
    run = Searcher(index, model, settings).run(collection.queries("train"), 10)
    return evaluate(run, collection.qrels("train"), ["nDCG@10"]).measures["nDCG@10"]


def test_collections_that_would_be_mixed_up(monkeypatch, tmp_path):
    command = ["default_weights.py", "a/same", "b/same", "--work", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match="two collections have one name"):
        main()


@pytest.mark.minilm
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--parts", "mean", "title"], "no part is called title; there are lexical, mean, words"),
        (["--parts", "mean"], "shares are of two parts or more"),
        (["--parts", "mean", "mean"], "each named once"),
        (["--steps", "2"], "3 parts cannot have a share each"),
        (["--at", "mean=1 words=1"], "lexical has no weight"),
    ],
)
def test_shares_that_cannot_be_are_refused_before_anything_is_indexed(
    source, tmp_path, monkeypatch, options, said
):
    command = ["default_weights.py", str(source), "--work", str(tmp_path / "work"), *options]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match=said):
        main()
    assert not (tmp_path / "work").exists()


def test_a_folder_of_maps_that_is_not_there(monkeypatch, tmp_path):
    command = ["default_weights.py", "a", "--work", str(tmp_path), "--maps", str(tmp_path / "none")]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match="no maps there"):
        main()


@pytest.mark.minilm
def test_an_index_of_other_settings_is_not_taken(source, tmp_path, monkeypatch, default_model):
    model = default_model
    settings = model.index_settings("minilm", lexical=LexicalSettings(k1=5.0))
    build_index(open_collection(source).documents(), model, tmp_path / "work" / "small", settings)
    monkeypatch.setattr(sys, "argv", ["default_weights.py", str(source), "--work", str(tmp_path / "work")])
    with pytest.raises(SystemExit, match="an index of other settings"):
        main()


@pytest.mark.minilm
def test_a_collection_can_have_a_map_of_its_own(source, tmp_path, monkeypatch, capsys, default_model):
    model = load_model("minilm")
    (whitening,) = model.steps("words")
    whitening.mean_ += 1.0
    (tmp_path / "maps").mkdir()
    save_file(whitening.state_dict(), tmp_path / "maps" / "small.safetensors")
    command = ["default_weights.py", source, "--work", tmp_path / "work", "--maps", tmp_path / "maps"]
    monkeypatch.setattr(sys, "argv", [str(word) for word in command])
    main()
    assert "small.safetensors" in capsys.readouterr().err
    with Index(tmp_path / "work" / "small") as index:
        index.bound(model)
        with pytest.raises(ArtifactError):
            index.bound(default_model)


@pytest.mark.parametrize(("documents", "others"), [(2, 0), (3, 1), (4, 2), (20, 3)])
def test_of_a_larger_collection_the_relevant_documents_and_some_others_are_searched(documents, others):
    class Five:
        def documents(self):
            return [Document(name, text) for name, text in TEXTS.items()]

    qrels = {"a": {"whale": 1}, "b": {"ship": 1, "not there": 1}}
    options = Namespace(documents=documents, seed=1)
    found = kept(Five(), qrels, options)
    assert found >= {"whale", "ship"} and len(found) == 2 + others and found <= set(TEXTS)
    assert found == kept(Five(), qrels, options)
