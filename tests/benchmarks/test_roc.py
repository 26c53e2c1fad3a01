"""The command line of the benchmark of RoC, and its tables and pictures where rows are missing."""

from argparse import Namespace

import pytest
from benchmarks.papers.roc import merged, trained_rows
from benchmarks.papers.roc_figures import draw
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
