import sys

import pytest

from counterpoint.data import open_collection
from counterpoint.errors import DataError, MissingExtraError

NAME = "counterpoint-stand-in/tiny/test"


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """A data set made of local files in the catalogue, so that nothing is downloaded."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IR_DATASETS_TMP", str(tmp_path / "tmp"))
    catalogue = pytest.importorskip("ir_datasets")
    (tmp_path / "docs.tsv").write_text("d1\tfirst text\nd2\tsecond text\n")
    (tmp_path / "queries.tsv").write_text("q1\tone\nq2\ttwo\n")
    (tmp_path / "qrels").write_text("q2 0 d1 1\nq2 0 d2 0\n")
    made = catalogue.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels"),
    )
    monkeypatch.setitem(catalogue.registry._registered, NAME, made)
    return catalogue


def test_a_data_set_of_the_catalogue(registered):
    collection = open_collection(f"ir_datasets:{NAME}")
    assert [(document.id, document.text) for document in collection.documents()] == [
        ("d1", "first text"),
        ("d2", "second text"),
    ]
    assert (collection.name, collection.splits) == (NAME.replace("/", "-"), ("test",))
    assert collection.queries() == {"q1": "one", "q2": "two"}
    assert collection.queries("test") == {"q2": "two"}
    assert collection.qrels("test") == {"q2": {"d1": 1, "d2": 0}}


def test_a_data_set_without_documents_or_judgements(registered, tmp_path, monkeypatch):
    queries = registered.create_dataset(queries_tsv=str(tmp_path / "queries.tsv"))
    monkeypatch.setitem(registered.registry._registered, NAME, queries)
    collection = open_collection(f"ir_datasets:{NAME}")
    assert collection.splits == ()
    with pytest.raises(DataError, match="has no documents"):
        list(collection.documents())


def test_unknown_id(registered):
    with pytest.raises(DataError, match="ir_datasets knows no data set 'counterpoint-none'"):
        open_collection("ir_datasets:counterpoint-none")


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'counterpoint-ir\[ir-datasets\]'"):
        open_collection("ir_datasets:beir/scifact/test")
