"""A small collection, an index of it, and a way to call commands."""

import json

import pytest

from counterpoint.cli.main import main

DOCUMENTS = {
    "fox": ("", "The quick brown fox jumps over the lazy dog."),
    "whale": ("Whales", "A whale is a mammal that lives in the sea."),
    "train": ("", "Trains to the coast leave from platform nine."),
    "empty": ("", ""),
}
QUERIES = {"q1": "fox", "q2": "platform of the trains", "q3": "never judged"}
QRELS = {"q1": {"fox": 1}, "q2": {"train": 1, "whale": 0}}


@pytest.fixture
def collection(tmp_path):
    folder = tmp_path / "collection"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": name, "title": title, "text": text} for name, (title, text) in DOCUMENTS.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [{"_id": name, "text": text} for name, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{q}\t{d}\t{grade}" for q, judged in QRELS.items() for d, grade in judged.items()]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    return folder


@pytest.fixture
def lexical(collection, tmp_path, capsys):
    folder = tmp_path / "index"
    assert main(["index", str(collection), "-o", str(folder), "--model", "none"]) == 0
    capsys.readouterr()
    return folder


@pytest.fixture
def call(capsys):
    """Run a command in this process: exit code, stdout, stderr."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
