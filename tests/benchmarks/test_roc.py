"""The command line of the benchmark of RoC, and its tables and pictures where rows are missing."""

import json
from argparse import Namespace

import pytest
from benchmarks.papers.roc import merged, pairs_of, trained_rows
from benchmarks.papers.roc_figures import draw
from benchmarks.papers.roc_pairs import show_seeds
from benchmarks.papers.roc_rows import CLEAR, NAIVE
from benchmarks.papers.roc_tables import DAGGER, marks, show


def test_rows_that_are_not_there_are_said(tmp_path, capsys):
    with pytest.raises(SystemExit, match="no row is named 'F'; there are start, dense, CLEAR"):
        trained_rows(Namespace(rows=["E", "F"], output=tmp_path))
    assert trained_rows(Namespace(rows=["E", "SparTerm"], output=tmp_path)) == ["start"]
    assert capsys.readouterr().err == "left out, since not trained: E, SparTerm\n"


def test_only_evaluations_of_the_same_rows_go_together():
    first = {"trained on": "a", "weights": {"E": {"weight": 1.0}}, "collections": {"a": 1}}
    assert merged({"1": first, "2": {**first, "collections": {"b": 2}}})["collections"] == {"a": 1, "b": 2}
    for changed in ({"trained on": "b"}, {"weights": {"E": {"weight": 1.1}}}):
        with pytest.raises(SystemExit, match=f"1 and 2 differ in '{next(iter(changed))}'"):
            merged({"1": first, "2": {**first, **changed}})
    with pytest.raises(SystemExit, match="2 has 'a' again"):
        merged({"1": first, "2": first})


def test_a_weight_at_the_edge_of_the_grid_is_marked(capsys):
    weights = {"start": {"weight": 2.0, "edge": True}, "dense": {"weight": 1.3, "edge": False}}
    show({"trained on": "a", "weights": weights, "collections": {}})
    out = capsys.readouterr().out
    assert "| start | 2.0, edge |" in out and "| dense | 1.3 |" in out


def test_a_hybrid_has_a_dagger_where_it_differs_from_the_naive_sum():
    def marked(*gains):
        values = {NAIVE: [0.5] * 8, CLEAR: [0.5 + gain for gain in gains]}
        systems = {f"BM25 + {row}": {"AP": dict(enumerate(v))} for row, v in values.items()}
        return marks({"collections": {"a": {"systems": systems}}}, ["a"], f"BM25 + {CLEAR}", "AP", DAGGER)

    assert marked(*[0.1, 0.2] * 4) == "†"
    assert marked(*[-0.1, -0.2] * 4) == "−†"
    assert marked(*[0.2, -0.1] * 4) == ""


def test_pictures_without_the_rows_of_figure_3(tmp_path, capsys):
    ranks = {"AP": dict.fromkeys("pq", 0.5), "RR@10": dict.fromkeys("pq", 0.5)}
    measured = {"systems": dict.fromkeys(("BM25", "E", "BM25 + E"), ranks), "words": {"p": 30, "q": 50}}
    draw("a", measured, ["E"], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"figure4.svg", "figure6.svg"}
    assert "figure 3 is not drawn" in capsys.readouterr().err


def test_table_6_over_seeds(tmp_path, capsys):
    paths = [tmp_path / f"{seed}.json" for seed in (1, 2, 3)]
    for path, gain in zip(paths, (0.1, 0.2, 0.3), strict=True):
        plain = {"a": 0.4, "b": 0.2, "c": 0.6}
        hidden = {query: value + gain * (1 if query != "c" else 0.7) for query, value in plain.items()}
        systems = {name: {"AP": v} for name, v in (("SparTerm", plain), ("SparTerm + I", hidden))}
        saved = {"trained on": "nq-qed", "collections": {"nq-qed": {"pairs": {"systems": systems}}}}
        path.write_text(json.dumps(saved))
    show_seeds(pairs_of(Namespace(json=paths)))
    out = capsys.readouterr().out
    assert "| SparTerm | 40.0 (40.0 to 40.0) [40.0, 40.0] |" in out
    assert "| SparTerm + I | 58.0 (49.0 to 67.0) [35.6, 80.4] |" in out
    assert "| SparTerm + I − SparTerm; seed 2 | 18.000 | " in out
    assert "| SparTerm + I − SparTerm | 18.000 | -4.357 | 40.357 | 3 seeds |" in out
    paths[0].write_text(json.dumps({"trained on": "nq-qed", "collections": {"nq-qed": {}}}))
    with pytest.raises(SystemExit, match="1.json has no row of table 6"):
        pairs_of(Namespace(json=paths))
