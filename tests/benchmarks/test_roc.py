"""The command line of the benchmark of RoC, and its tables and pictures where rows are missing."""

import json
from argparse import Namespace

import pytest
from benchmarks.papers.roc import merged, over_seeds, trained_rows
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


def test_table_6_over_seeds(tmp_path, capsys):
    paths = [tmp_path / f"{seed}.json" for seed in (1, 2, 3)]
    for path, gain in zip(paths, (0.1, 0.2, 0.3), strict=True):
        plain = {"a": 0.4, "b": 0.2, "c": 0.6}
        hidden = {query: value + gain * (1 if query != "c" else 0.7) for query, value in plain.items()}
        systems = {name: {"AP": v} for name, v in (("SparTerm", plain), ("SparTerm + I", hidden))}
        path.write_text(
            json.dumps(evaluation({}) | {"collections": {"nq-qed": {"pairs": {"systems": systems}}}})
        )
    over_seeds(Namespace(json=paths))
    out = capsys.readouterr().out
    assert "| SparTerm | 40.0 (40.0 to 40.0) [40.0, 40.0] |" in out
    assert "| SparTerm + I | 58.0 (49.0 to 67.0) [35.6, 80.4] |" in out
    assert "| SparTerm + I − SparTerm; seed 2 | 18.000 | " in out
    assert "| SparTerm + I − SparTerm | 18.000 | -4.357 | 40.357 | 3 seeds |" in out
    paths[0].write_text(json.dumps(evaluation({})))
    with pytest.raises(SystemExit, match="these evaluations share no row that was trained"):
        over_seeds(Namespace(json=paths))


def evaluation(rows, bm25=(0.5, 0.2, 0.1)):
    """What is saved of rows whose hybrids have these values of AP for three queries."""

    def values(ap, rr=(1.0, 0.5, 0.05)):
        return {
            name: dict(zip("abc", of, strict=True)) for name, of in (("AP", ap), ("R@100", ap), ("RR@10", rr))
        }

    systems, changed = {"BM25": values(bm25)}, {"BM25": values(bm25)}
    for row, ap in rows.items():
        systems |= {row: values((0.1, 0.1, 0.1), (0.0, 1.0, 1.0)), f"BM25 + {row}": values(ap)}
        systems[f"BM25 + {row}, λ alike"] = values(ap)
        changed |= {f"BM25 + {row}{end}": values(ap, (0.5, 0.5, 0.0)) for end in ("", ", λ alike")}
    measured = {"documents": 9, "words": dict.fromkeys("abc", 30), "systems": systems, "shared": {}}
    measured["adversarial"] = {"changed": {}, "systems": changed}
    weights = {row: {"weight": 1.5, "edge": False} for row in ("start", *rows)}
    return {"trained on": "nq-qed", "weights": weights, "collections": {"nq-qed": measured}}


def test_rows_that_make_vectors_over_seeds(tmp_path, capsys):
    paths = [tmp_path / f"{seed}.json" for seed in (1, 2, 3)]
    for path, gain in zip(paths, (0.1, 0.2, 0.3), strict=True):
        rows = {NAIVE: (0.4, 0.2, 0.3), "I + E": (0.4 + gain, 0.2 + gain, 0.3 + gain)}
        path.write_text(json.dumps(evaluation(rows)))
    over_seeds(Namespace(json=paths))
    out = capsys.readouterr().out
    assert "9 documents, 3 test queries, seeds 1, 2, 3" in out
    assert "\nnq-qed\n" in out and "| 50.0 (40.0 to 60.0) [25.2, 74.8] |" in out
    ap = out.partition("\nAP of the hybrid\n")[2].partition("\nRR@10")[0]
    assert "| I + E − dense | 0.200 | -0.048 | 0.448 | 3 seeds |" in ap
    assert "| dense − BM25; seed 1 | 0.033 |" in ap
    assert "claims of rows that make vectors are left out, since there is no CLEAR, E, I." in out
    paths[0].write_text(json.dumps(evaluation(rows, bm25=(0.5, 0.2, 0.2))))
    with pytest.raises(SystemExit, match="1 and 2 differ in queries or in what BM25 finds"):
        over_seeds(Namespace(json=paths))
