"""ColBERTer's gate: all rows train and are measured in two steps; choice and drop rates by hand."""

import json
from argparse import Namespace

import numpy as np
import pytest
import torch
from benchmarks.papers import colberter_gate as bench
from benchmarks.papers import colberter_gate_rows as of_rows
from benchmarks.papers.colberter_gate_measures import (
    Texts,
    class_of,
    drops,
    measured,
    read,
    reader,
    separation,
)
from benchmarks.papers.colberter_gate_tables import show, show_choice
from tests.recipe.small import write_collection

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.measure import evaluate
from counterpoint.search import Searcher

WORDS = [("the", "stop words"), (".", "punctuation"), ("1958", "numbers"), ("wing", "others")]


def with_test(folder):
    """The small collection, whose queries for development are for the test, too."""
    write_collection(folder)
    (folder / "qrels" / "test.tsv").write_text((folder / "qrels" / "dev.tsv").read_text())
    return folder


def test_classes():
    assert [class_of(word) for word, _ in WORDS] == [kind for _, kind in WORDS]


def test_drops_by_class_and_word():
    """Six rows: two of *the*, one closed; the others are open."""
    texts = Texts([], {}, ["a"], None, [], np.array([0, 0, 1, 2, 3, 3]), WORDS)
    found = drops(np.array([0.0, 0.5, 1.0, 2.0, 0.75, 1.5]), texts)
    assert (found["rows"], found["dropped"][0.0], found["dropped"][0.75]) == (6, 1, 3)
    assert found["classes"]["stop words"] == {
        "rows": 2,
        "mean": 0.25,
        "dropped": {0.0: 1, 0.1: 1, 0.25: 1, 0.5: 2, 0.75: 2},
    }
    assert list(found["words"]) == ["the", "wing", ".", "1958"]
    assert found["separation"] == 1.0


def test_separation_counts_ties_half():
    assert separation(np.array([1.0, 3.0]), np.array([1.0, 2.0])) == pytest.approx((0.5 + 1 + 0 + 0) / 4)
    assert separation(np.zeros(0), np.ones(1)) is None


def saved(seed, quality, dropped):
    """What `run` saves, with two queries and ten rows a collection: by row and threshold the value."""

    def one(row):
        values = {
            level: {
                **{
                    f"{workflow} nDCG@10": [value * 0.9, value * 1.1]
                    for workflow in ("dense", "words", "dense-words", "hybrid")
                },
                "hybrid R@100": [value, value],
            }
            for level, value in quality[row].items()
        }
        counts = {"rows": 10, "mean": 0.5, "dropped": {**dict.fromkeys(map(str, of_rows.THRESHOLDS), 0)}}
        counts["dropped"] |= dropped.get(row, {})
        found = {"documents": 2, "quality": values, "rows": 10}
        if row != "α_CS 0":
            found |= counts
            found |= {"classes": {kind: counts for _, kind in WORDS}, "words": {"the": counts, "|": counts}}
            found["separation"] = 0.5
        return {"weights": {"mean": 0.5, "words": 0.1}, "collections": {"dev": found, "med": found}}

    return {
        "seed": seed,
        "queries": {"med": ["q", "r"]},
        "rows": {row: one(row) for row in quality},
    }


def test_the_choice_drops_most_of_what_loses_little(capsys):
    """At ¾ no threshold drops 2 of 10 rows for .004, one of 0.25 half of them for .006."""
    quality = {"α_CS 0": {"0.0": 0.8}, "α_CS 0.75": {"0.0": 0.796, "0.25": 0.794}}
    dropped = {"α_CS 0.75": {"0.0": 2, "0.25": 5}}
    seeds = [saved(seed, quality, dropped) for seed in (1, 2)]
    assert show_choice(seeds) == ("α_CS 0.75", "0.0")
    show(seeds, {"margins": {"minilm": [1.0, 2.0, 0.5]}, "held out": {"BM25": 0.5}})
    out = capsys.readouterr().out
    assert "| α_CS 0.75, r above 0.25 | 2 | 0.794 (0.794 to 0.794) | +0.0060 | 50.0% |" in out
    assert "| α_CS 0.75 − α_CS 0 | -0.004 |" in out and "| 0.50 / 20% |" in out
    quality["α_CS 0.75"]["0.0"] = 0.79
    assert show_choice([saved(1, quality, dropped)]) is None


@pytest.mark.minilm
def test_the_gate_starts_at_one_and_scores_are_an_index_s(tmp_path):
    """Unit length or not, r is 1; and brute force ranks as the index of the same model does."""
    model = of_rows.start_model()
    made = model.encoder.gate_weights(["The wing is flat.", "Red"], "words")
    assert made.values == pytest.approx(1.0)
    model.encoder.gates["words"].linear_.weight.data.normal_(generator=torch.manual_seed(1))
    model.search = {"weights": {"mean": 0.5, "words": 0.07}, "scale": "none", "floor": ["words"]}
    collection = open_collection(with_test(tmp_path / "small"), passage_words=None)
    texts = read(collection, "test", reader())
    found = measured(model, texts)
    assert sum(one["rows"] for one in found["classes"].values()) == found["rows"]
    build_index(
        collection.documents(), model, tmp_path / "index", model.index_settings(codec="float16", lexical=None)
    )
    with Index(tmp_path / "index") as index:
        kept = found["rows"] - found["dropped"][0.0]
        assert index.info()["sets"]["words"]["vectors"] == kept < found["rows"]
        run = Searcher(index, model).run(collection.queries("test"), 100, workflow="hybrid")
    values = evaluate(run, texts.qrels, ("nDCG@10",)).per_query["nDCG@10"]
    ours = dict(zip(texts.queries, found["quality"][0.0]["hybrid nDCG@10"], strict=True))
    assert ours == pytest.approx({query: values[query] for query in texts.queries}, abs=1e-3)


@pytest.mark.minilm
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Whitening:UserWarning")
def test_rows_train_and_are_measured(tmp_path, monkeypatch, capsys):
    """The teachers and three rows of two steps each; what is there is not trained again."""
    with_test(tmp_path / "small")
    for name, value in {"TRAINING": ("small",), "QUERIES": 12, "HELD_OUT": 4}.items():
        monkeypatch.setattr(bench, name, value)
    monkeypatch.setattr(of_rows, "BATCH", 4)
    said = {"data": tmp_path, "output": tmp_path / "runs", "steps": 2}
    teacher, path = tmp_path / "teacher.json", tmp_path / "1.json"
    bench.teach(Namespace(**said, json=teacher))
    rows = ["α_CS 0", "α_CS 0.75", "old way"]
    arguments = Namespace(**said, json=path, seed=1, rows=rows, collections=["small"])
    bench.run(arguments)
    found = path.read_text()
    bench.run(arguments)
    assert path.read_text() == found and list(json.loads(found)["rows"]) == rows
    show([json.loads(found)], json.loads(teacher.read_text()))
    assert "| old way − α_CS 0.75; seed 1 |" in capsys.readouterr().out
