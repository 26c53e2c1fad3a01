"""A disk or a network that fails while a source is read is the source's error, whatever was to be done."""

import errno
import http.client
import lzma
import os
import tarfile
import zipfile
import zlib

import pytest
from tests.cli.commands import fails

from counterpoint.cli.main import main
from counterpoint.data import Collection, ReadPolicy, open_collection
from counterpoint.data.collection import Source
from counterpoint.data.reader import Located
from counterpoint.errors import DataError
from counterpoint.index import build_index
from counterpoint.types import Document

FAILURES = [
    ConnectionError("reset by peer"),
    TimeoutError(),
    FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/mnt/gone.jsonl"),
    OSError(errno.EIO, os.strerror(errno.EIO), "/mnt/bad.jsonl"),
    PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/mnt/closed"),
    EOFError("ended"),
    zlib.error("invalid block"),
    lzma.LZMAError("corrupt"),
    zipfile.BadZipFile("no zip"),
    tarfile.ReadError("no tar"),
    http.client.IncompleteRead(b"", 3),
]


class Failing(Source):
    """One document, and then an error wherever it is asked."""

    def __init__(self, error):
        self.error = error

    name = "somewhere"
    splits = ("test",)

    def documents(self, reader):
        yield Located(Document("a", "one text"), "somewhere", 1)
        raise self.error

    def queries(self, policy):
        raise self.error

    def query_metadata(self, policy):
        raise self.error

    def qrels(self, split, policy):
        raise self.error


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_no_error_of_a_disk_or_a_network_leaves_a_collection(tmp_path, error):
    collection = Collection(Failing(error))
    asked = [
        lambda: list(collection.documents()),
        lambda: collection.queries(),
        lambda: collection.queries("test"),
        collection.query_metadata,
        lambda: collection.qrels("test"),
        lambda: build_index(collection.documents(), None, tmp_path / "index"),
    ]
    for ask in asked:
        with pytest.raises(DataError) as caught:
            ask()
        said = str(caught.value)
        assert said.startswith("somewhere: ") and "cannot be read" in said and type(error).__name__ in said
        assert "check that it is there" in said and "write" not in said and "space" not in said
        assert (error.filename if getattr(error, "filename", None) else "") in said
    assert not (tmp_path / "index").exists()


def test_an_error_of_ours_passes(tmp_path):
    """What a source says itself is said better; what is done with a document is no error of the source."""
    ours = DataError("this line is wrong", path="file", line=3)
    with pytest.raises(DataError) as caught:
        list(Collection(Failing(ours)).documents())
    assert caught.value is ours
    documents = Collection(Failing(ValueError("a bug"))).documents()
    next(documents)
    with pytest.raises(ValueError, match="^a bug$"):
        next(documents)


def test_a_file_that_vanishes_while_a_folder_is_read(tmp_path, monkeypatch, call):
    for name in ("a", "b"):
        (tmp_path / "files" / name).mkdir(parents=True)
        (tmp_path / "files" / name / "text.txt").write_text(f"text of {name}")
    documents = open_collection(tmp_path / "files", policy=ReadPolicy(files="error")).documents()
    assert "text of a" in next(documents).text
    vanishing = tmp_path / "files" / "b" / "text.txt"
    is_file = os.path.isfile

    def gone(path):  # just after it was looked at
        found = is_file(path)
        if str(path) == str(vanishing):
            vanishing.unlink()
        return found

    monkeypatch.setattr("os.path.isfile", gone)
    with pytest.raises(DataError, match=r"b/text\.txt: cannot be read: No such file"):
        next(documents)
    vanishing.write_text("text of b")
    code, _, err = call("index", tmp_path / "files", "-o", tmp_path / "i", "--model", "none", "--no-lenient")
    assert code == 2 and "text.txt: cannot be read: No such file" in err and "write" not in err
    vanishing.write_text("text of b")
    code, out, err = call("index", tmp_path / "files", "-o", tmp_path / "i", "--model", "none")
    assert code == 0 and out.startswith("1 document ") and "text.txt: cannot be read: No such file" in err


def test_a_name_that_the_system_refuses_is_no_source(call, tmp_path):
    found = call("index", "x" * 5000, "-o", tmp_path / "i", "--model", "none")
    assert fails(found, "cannot be read (OSError: File name too long)", "a source is")


@pytest.fixture
def call(capsys):
    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
