"""Files of answers: both layouts, and what is refused with its line."""

import gzip
import json

import pytest

from counterpoint.data import open_collection, read_answers, write_beir
from counterpoint.errors import DataError


def test_lines_of_json(tmp_path):
    """Queries of a BEIR folder may carry their answers; those that do not are passed over."""
    rows = [
        {"_id": "q1", "text": "when", "answers": ["1973", "October 1973"]},
        {"_id": "q2", "text": "no answers here"},
        {"query_id": 3, "answers": ["x"]},
        {"id": "q4", "answers": ["y"]},
    ]
    path = tmp_path / "queries.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    assert read_answers(path) == {"q1": ("1973", "October 1973"), "3": ("x",), "q4": ("y",)}


def test_answers_are_found_again_in_a_collection_that_was_written(tmp_path):
    """Queries keep what else they carry under `metadata`."""
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "qrels").mkdir(parents=True)
    (source / "corpus.jsonl").write_text('{"_id": "a", "text": "October 1973"}\n')
    (source / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "when", "answers": ["1973", "in October"]}\n'
    )
    (source / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    write_beir(open_collection(source), copy)
    found = read_answers(copy / "queries.jsonl")
    assert found == read_answers(source / "queries.jsonl") == {"q1": ("1973", "in October")}


def test_columns(tmp_path):
    path = tmp_path / "answers.tsv"
    path.write_text("q1\t1973\tOctober 1973\n\nq2\tx\n")
    assert read_answers(path) == {"q1": ("1973", "October 1973"), "q2": ("x",)}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "q1\tx\nq2\t \n", r"a.tsv:2: query 'q2': expected one or more answers"),
        ("a.tsv", "q1\n", "query 'q1': expected one or more answers"),
        ("a.tsv", "q1\tx\nq1\ty\n", "a.tsv:2: duplicate query id 'q1'"),
        ("a.jsonl", '{"_id": "q1", "answers": []}\n', "query 'q1': expected one or more answers"),
        ("a.jsonl", '{"_id": "q1", "answers": "x"}\n', "a list under answers"),
        ("a.jsonl", '{"answers": ["x"]}\n', "an id"),
        ("a.jsonl", '{"_id": "q1", "answers": [5]}\n', r"each a text, found \[5\]"),
        ("a.jsonl", '{"_id": "q1", "text": "x"}\n', "no line has answers"),
        ("a.jsonl", "q1 x\n", "a.jsonl:1: not valid JSON"),
    ],
)
def test_what_is_refused(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_answers(path)
