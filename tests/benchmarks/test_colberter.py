"""ColBERTer's tables and figure 5 from measured values: by hand."""

import json
from argparse import Namespace

import pytest
from benchmarks.papers import colberter
from benchmarks.papers.colberter import evaluate_collection, folder_of, one_model
from benchmarks.papers.colberter_effects import STANDALONE, figure5, show_effects, syntheses_of, values_of
from benchmarks.papers.colberter_rows import row, tokens
from benchmarks.papers.colberter_tables import show, stored
from tests.recipe.small import write_collection

from counterpoint.search import Run

RUN = Run({"q1": {"unknown": 3.0, "bad": 2.0, "good": 1.0}, "q2": {"good": 2.0, "unknown": 1.0}})
ROW = "tokens 32"
WORKFLOWS = {"dense": {"nDCG@10": 0.5, "R@100": 0.7}, "dense-words": {"nDCG@10": 0.6, "R@100": 0.7}}


def collection(vectors):
    """What `colberter.py` saves of one collection of ten documents, with one row."""
    rows = {
        ROW: {
            "vectors": vectors,
            "dim": 32,
            "exact": False,
            "workflows": WORKFLOWS,
            "refined": {"nDCG@10": 0.65, "R@100": 0.8},
        }
    }
    plain = {"nDCG@10": 0.4, "R@100": 0.8}
    return {"rows": rows, "text": 1000, "documents": 10, "BM25": plain, STANDALONE: plain}


def test_lists_are_condensed_where_something_is_judged_not_relevant():
    """Without `unknown` the good document of q1 is second, 1 / log2(3); with it third, 1 / log2(4)."""
    found = values_of({"run": RUN}, {"q1": {"good": 1, "bad": 0}, "q2": {"good": 1}})
    assert found["measure"] == "nDCG(judged_only=True)@10"
    assert found["values"]["run"] == pytest.approx({"q1": 0.6309, "q2": 1.0}, abs=1e-4)
    found = values_of({"run": RUN}, {"q1": {"good": 1}, "q2": {"good": 1}})
    assert found["measure"] == "nDCG@10"
    assert found["values"]["run"] == pytest.approx({"q1": 0.5, "q2": 1.0})


def test_figure_5(capsys, tmp_path):
    """By hand: means .5 and .3, each with a variance of .01, so d = 2 and Hedges' g = 2·(1 − 3/(4·4 − 1))."""
    values = {"uni": {"a": 0.4, "b": 0.5, "c": 0.6}, "BM25": {"a": 0.2, "b": 0.3, "c": 0.4}}
    found = {
        name: {"effects": {"measure": measure, "values": values}}
        for name, measure in (("one", "nDCG(judged_only=True)@10"), ("two", "nDCG@10"))
    }
    (made,) = syntheses_of(found, [("uni", "BM25"), ("not searched", "BM25")])
    assert [effect.estimate for effect in made.effects] == pytest.approx([1.6, 1.6])
    assert made.summary.estimate == pytest.approx(1.6) and (made.treatment, made.control) == ("uni", "BM25")
    assert [comparison.shown for comparison in made.comparisons] == ["nDCG(judged_only=True)@10", "nDCG@10"]
    show_effects(found, [("uni", "BM25")])
    out = capsys.readouterr().out
    assert "condensed lists on one\n" in out and "| **+1.600** |" in out
    figure5(found, [("uni", "BM25")]).save(tmp_path / "figure5.svg")
    assert (tmp_path / "figure5.svg").read_text().startswith("<?xml")


def test_tables_have_candidates_of_both_kinds_and_bytes_of_all_documents(capsys):
    """Half precision: 2·128 for the text, 2·32 for each of (30 + 50) / 20 vectors a document."""
    found = {"one": collection(30), "two": collection(50)}
    assert stored(found, ROW) == 256 + 4 * 64
    show(found)
    out = capsys.readouterr().out
    assert "| tokens 32 | 0.600 / 0.700 (paper 0.734 / 0.807) | 0.650 / 0.800 (paper 0.734 / 0.861) |" in out
    assert "The standalone retriever alone: 0.400 / 0.800" in out
    assert "| tokens 32 | 4.0 |  |  | 512 | 5.12 | 0.600 |" in out


@pytest.mark.minilm
def test_a_collection_is_searched_by_rows_and_beside_them(tmp_path, capsys):
    """An untrained row on forty documents, of which one is judged as not relevant."""
    folder = write_collection(tmp_path / "small")
    judged = folder / "qrels" / "test.tsv"
    judged.write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{i}\td{i}\t1\n" for i in range(4)) + "q0\td9\t0\n"
    )
    row(tokens(32)).declared_model().setup().eval().save(folder_of(ROW, tmp_path))
    model, settings = one_model([ROW], tmp_path, {})
    found = evaluate_collection("small", model, settings, Namespace(data=tmp_path, output=tmp_path))
    assert found["rows"][ROW]["refined"].keys() == {"nDCG@10", "R@100"}
    # All forty documents are candidates of both retrievers, so that refined they are ranked alike.
    assert found["rows"][ROW]["refined"] == pytest.approx(found["rows"][ROW]["workflows"]["dense-words"])
    assert found["effects"]["measure"] == "nDCG(judged_only=True)@10"
    assert found["effects"]["values"].keys() == {"BM25", STANDALONE}
    show(json.loads(json.dumps({"small": found})))
    assert "The standalone retriever alone" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["train", "evaluate"])
def test_a_row_that_does_not_exist_is_refused(what, tmp_path, monkeypatch):
    monkeypatch.setattr(colberter, "training_collection", lambda *arguments: tmp_path)
    command = ["colberter", what, str(tmp_path), "-o", str(tmp_path), "--rows", "words 32", "words 33"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit, match="no row is named 'words 33'; there are 'tokens 32"):
        colberter.main()
