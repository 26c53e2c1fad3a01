"""The real collections next to the repository, where they are."""

from pathlib import Path

import pytest

from counterpoint.data import ReadPolicy, ReadReport, cut_passages, open_collection, read_qrels, read_trec_run
from counterpoint.errors import DataError

DATA = Path(__file__).parents[2].parent / "shared" / "data"
pytestmark = [pytest.mark.shared, pytest.mark.skipif(not DATA.is_dir(), reason="no shared collections here")]


@pytest.mark.parametrize(
    ("name", "documents", "empty", "queries"),
    [
        ("scifact", 5183, 0, {"test": 300, "train": 809}),
        ("cranfield", 1400, 2, {"test": 225}),
        ("cisi", 1460, 0, {"test": 76}),
        ("cacm", 3204, 0, {"test": 52}),
        ("med", 1033, 0, {"test": 30}),
        ("msmarco-v2-dl21-pool", 10553, 0, {"dl21": 53, "dl21-pool": 53}),
    ],
)
def test_counts(name, documents, empty, queries):
    collection, report = open_collection(DATA / name), ReadReport()
    assert sum(1 for _ in collection.documents(report)) == documents
    assert (report.documents, report.empty, report.skipped) == (documents, empty, 0)
    assert {split: len(collection.queries(split)) for split in collection.splits} == queries


def test_judgements_beyond_the_corpus():
    strict = open_collection(DATA / "msmarco-v2-dl21-pool", policy=ReadPolicy(unknown_judged="error"))
    assert len(strict.qrels("dl21-pool")) == 53
    with pytest.raises(DataError, match="judged in split 'dl21' are not in the corpus"):
        strict.qrels("dl21")


def test_real_runs():
    run = read_trec_run(DATA / "runs" / "bm25.dl19.trec.gz")
    qrels = read_qrels(DATA / "runs" / "qrels.dl19-passage.txt")
    assert set(run.scores) == set(qrels)
    assert len(qrels) == 43


def test_passages_of_real_texts():
    for document in open_collection(DATA / "cisi").documents():
        passages = list(cut_passages(document, max_words=40))
        for passage in passages:
            assert document.text[passage.start : passage.start + len(passage.text)] == passage.text
        assert "".join(passage.text for passage in passages).split() == document.text.split() or (
            "".join("".join(passage.text.split()) for passage in passages) == "".join(document.text.split())
        )
