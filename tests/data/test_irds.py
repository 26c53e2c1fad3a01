import errno
import os
import sys
import zlib

import pytest

from counterpoint.cli.main import main
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


def downloads():
    """What a download raises: errors of requests, of what it uses, of archives, and of the catalogue."""
    requests, urllib3 = pytest.importorskip("requests"), pytest.importorskip("urllib3")
    return [
        requests.exceptions.ConnectionError("Max retries exceeded: Name or service not known"),
        requests.exceptions.ChunkedEncodingError("gone"),
        requests.exceptions.ReadTimeout("slow"),
        urllib3.exceptions.ProtocolError("reset"),
        urllib3.exceptions.ReadTimeoutError(None, "url", "slow"),
        zlib.error("damaged"),
        RuntimeError("All download sources failed", [("url", OSError("x"))]),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/home/one/.ir_datasets/x"),
    ]


@pytest.mark.parametrize("at", range(8))
def test_a_download_that_fails_is_no_failure_to_write(registered, monkeypatch, tmp_path, capsys, at):
    error = downloads()[at]

    def fail(self):
        raise error

    kind = type(registered.registry._registered[NAME])
    for name in ("docs_iter", "queries_iter", "qrels_iter"):
        monkeypatch.setattr(kind, name, fail, raising=False)
    collection = open_collection(f"ir_datasets:{NAME}")
    for ask in (collection.queries, lambda: collection.qrels("test"), lambda: list(collection.documents())):
        with pytest.raises(DataError, match="IR_DATASETS_HOME"):
            ask()
    code = main(["index", f"ir_datasets:{NAME}", "-o", str(tmp_path / "i"), "--model", "none"])
    said = capsys.readouterr().err
    assert code == 2 and f"ir_datasets:{NAME}: " in said and type(error).__name__ in said
    assert "cannot write" not in said and "check the connection" in said
    assert not (tmp_path / "i").exists()


def test_files_of_a_data_set_that_are_gone(registered, tmp_path):
    (tmp_path / "docs.tsv").unlink()
    (tmp_path / "qrels").unlink()
    collection = open_collection(f"ir_datasets:{NAME}")
    for ask in (lambda: list(collection.documents()), lambda: collection.qrels("test")):
        with pytest.raises(DataError, match=rf"ir_datasets:{NAME}: .*cannot be read"):
            ask()


def test_unknown_id(registered):
    with pytest.raises(DataError, match="ir_datasets has no data set 'counterpoint-none'"):
        open_collection("ir_datasets:counterpoint-none")


def test_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[ir-datasets\]'"):
        open_collection("ir_datasets:beir/scifact/test")
