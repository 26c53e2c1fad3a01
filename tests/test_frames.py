"""Results as pandas frames and as the tables of notebooks."""

import sys

import pytest

from counterpoint.errors import DataError, MissingExtraError
from counterpoint.frames import frame, html_table
from counterpoint.index import Index, build_index
from counterpoint.measure import compare, evaluate
from counterpoint.search import Answer, Hit, Run, Searcher
from counterpoint.types import Document
from tests.fakes import DOCUMENTS, HashModel

RUN = Run({"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 0.5}, "q3": {}})
QRELS = {"q1": {"b": 1}, "q2": {"c": 1}}


def test_a_run_is_a_row_for_every_ranked_document_and_back():
    pytest.importorskip("pandas")
    rows = RUN.to_pandas()
    assert rows.values.tolist() == [["q1", "a", 1, 2.0], ["q1", "b", 2, 1.0], ["q2", "c", 1, 0.5]]
    assert list(rows.columns) == ["query", "document", "rank", "score"]
    assert Run.from_pandas(rows.iloc[::-1]) == Run({"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 0.5}})
    named = rows.rename(columns={"query": "qid", "document": "docno"})
    assert Run.from_pandas(named, provenance={"tag": "bm25"}).provenance == {"tag": "bm25"}
    assert Run.from_pandas(named) == Run.from_pandas(rows)
    assert Run.from_pandas(rows.iloc[:0]) == Run({})


def test_a_frame_that_is_no_run_is_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(
        DataError, match="no column 'document' or 'docno' or 'doc_id'; it has 'query', 'score'"
    ):
        Run.from_pandas(pandas.DataFrame({"query": ["q"], "score": [1.0]}))
    twice = pandas.DataFrame({"query": ["q", "q"], "document": ["a", "a"], "score": [1.0, 2.0]})
    with pytest.raises(DataError, match="query 'q': document 'a' is ranked twice"):
        Run.from_pandas(twice)
    with pytest.raises(DataError, match="must be finite"):
        Run.from_pandas(twice.assign(document=["a", "b"], score=[1.0, float("nan")]))


def test_a_report_is_a_row_for_every_query():
    pytest.importorskip("pandas")
    report = evaluate(RUN, QRELS, "RR@10 P@1")
    rows = report.to_pandas()
    assert rows.loc["q1"].to_dict() == {"RR@10": 0.5, "P@1": 0.0}
    assert rows.mean().to_dict() == dict(report.measures)
    page = report._repr_html_()
    assert "2 queries" in page and "0.7500" in page and "1 queries of the run are not judged" in page


def test_a_comparison_is_a_row_for_every_pair():
    pytest.importorskip("pandas")
    queries = [f"q{at}" for at in range(8)]
    systems = {"a<b>": [dict.fromkeys(queries, 0.25)], "b": [{q: at / 8 for at, q in enumerate(queries)}]}
    comparison = compare("some", "nDCG@10", systems)
    (row,) = comparison.to_pandas().to_dict("records")
    assert row["treatment"] == "b" and row["difference"] == pytest.approx(0.1875)
    assert (row["wins"], row["ties"], row["losses"]) == (5, 1, 2)
    page = comparison._repr_html_()
    assert "a&lt;b&gt;" in page and "<b>" not in page and "0.1875" in page


def test_an_answer_is_a_row_for_every_hit(tmp_path):
    pytest.importorskip("pandas")
    build_index(DOCUMENTS, HashModel(), tmp_path / "index")
    with Index(tmp_path / "index") as index:
        answer = Searcher(index, HashModel()).search(DOCUMENTS[0].text, 3)
    rows = answer.to_pandas()
    assert rows["id"].tolist() == [hit.id for hit in answer]
    parts = [name for name in rows.columns if name not in ("rank", "id", "score", "title", "text")]
    assert parts and rows[parts].sum(axis=1).tolist() == pytest.approx(rows["score"].tolist())
    assert answer[0].id in answer._repr_html_()


def test_a_notebook_shows_no_markup_of_a_document():
    hit = Hit(1, 0.5, Document("<i>", "</table><script>alert(1)</script>" + "x" * 300, "\x1b]52"), {"a": 0.5})
    page = Answer("<q>", "hybrid", (hit,))._repr_html_()
    assert "<script>" not in page and "&lt;q&gt;" in page and "\x1b" not in page and "…" in page
    assert "no document matches" in Answer("q", "hybrid", ())._repr_html_()


def test_numbers_have_four_digits_and_counts_none():
    page = html_table("t", ("name", "n", "x", "yes"), [("a", 1200, 0.12345, True)], ["a note"])
    assert ">1,200<" in page and ">0.1235<" in page and ">True<" in page and "a note" in page


def test_without_pandas_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[pandas\]"):
        frame({"a": [1]})
