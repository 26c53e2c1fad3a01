"""Standard input as a source."""

import io
import os
import sys
from types import SimpleNamespace

import pytest

from counterpoint.data import Fields, ReadPolicy, ReadReport, open_collection
from counterpoint.errors import ConfigError, DataError


@pytest.fixture
def pipe(monkeypatch):
    def into(data):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    return into


def read(policy=None, **named):
    report = ReadReport()
    collection = open_collection("-", fields=Fields(**named), policy=policy)
    decided = collection.decided()
    return [(d.id, d.text) for d in collection.documents(report)], decided, report


LINES = [("stdin:1", "one"), ("stdin:3", "zwei größer")]
RECORDS = [("1", "one"), ("2", "two")]
PIPED = {
    "lines": ("one\n\nzwei größer\n", LINES, "one document per line"),
    "lines without an end": ("one\r\n\r\nzwei größer", LINES, "one document per line"),
    "JSON Lines": ('{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n', RECORDS, "JSON Lines"),
    "own fields": ('\n{"id": 1, "body": "one"}\n{"id": 2, "body": "two"}\n', RECORDS, "JSON Lines"),
    "an array": ('[{"id": 1, "text": "one"},\n {"id": 2, "text": "two"}]', RECORDS, "JSON"),
    "an object": ('{\n"documents": [{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]}', RECORDS, "JSON"),
    "a footnote": ("[1] one\n", [("stdin:1", "[1] one")], "one document per line"),
    "a brace": ("{one} two\n", [("stdin:1", "{one} two")], "one document per line"),
}


@pytest.mark.parametrize("kind", PIPED)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_what_is_piped_in(kind, encoding, pipe):
    text, expected, said = PIPED[kind]
    pipe(text.encode(encoding))
    found, decided, _ = read()
    assert found == expected and decided[0] == f"stdin: {said}"


def test_it_can_be_read_again_and_leaves_nothing_behind(pipe, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pipe(b"one\ntwo\n")
    collection = open_collection("-")
    assert len(os.listdir(tmp_path)) == 1
    assert list(collection.documents()) == list(collection.documents())
    del collection
    assert os.listdir(tmp_path) == []


def test_messages_name_stdin(pipe):
    pipe(b'{"id": 1, "text": "one"}\n{"id": 1, "text": "two"}\n')
    with pytest.raises(DataError, match=r"^stdin:2: duplicate id '1', first used at stdin:1"):
        read()
    pipe(b'{"id": 1, "text": "one"}\n{broken\n')
    with pytest.raises(DataError, match=r"^stdin:2: not valid JSON"):
        read()
    pipe(b'{"id": 1, "text": "one"}\n{broken\n')
    _, _, report = read(ReadPolicy.lenient())
    assert report.notes[0].startswith("stdin:2: ") and report.skipped == 1
    pipe(b'{"id": 1, "text": "one"}\n')
    with pytest.raises(DataError, match=r"^stdin: no field 'z' for the text; there are 'id', 'text'"):
        read(text="z")


def test_what_cannot_be_piped_in(pipe, monkeypatch):
    for data in (b"", b"\n \n"):
        pipe(data)
        with pytest.raises(DataError, match="standard input is empty"):
            read()
    pipe(b"\0\1\2")
    with pytest.raises(DataError, match="^stdin: has NUL bytes"):
        read()
    pipe(b"one\n")
    with pytest.raises(ConfigError, match="standard input has one document per line"):
        read(text="body")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(isatty=lambda: True)))
    with pytest.raises(ConfigError, match="'-' reads piped input, and there is none"):
        read()
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="'-' reads piped input"):
        read()
