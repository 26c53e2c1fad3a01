"""Reading an index in batches; columns, sparse vectors and ids for engines."""

import subprocess
import sys
import uuid

import pytest
from tests.exporters.notes import build, documents

from counterpoint.errors import ConfigError
from counterpoint.exporters import contents, query_for
from counterpoint.exporters.names import ENGINES
from counterpoint.exporters.writing import collection_name
from counterpoint.index import Index
from counterpoint.types import Document


def test_batches_are_small_and_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "READ", 7)
    monkeypatch.setattr(contents, "FLOATS", 600)
    build(tmp_path / "i", documents(20))
    with Index(tmp_path / "i") as index:
        what = contents.Contents.of(index, "notes", several=True)
        read = list(contents.batches(index, what, weights=True))
        ids = [row.document.id for rows in read for row in rows]
        assert ids == [index.name_of(position) for position in index.positions.tolist()]
        assert all(len(rows) <= 7 for rows in read)
        assert all(len(rows) == 1 or sum(row.floats for row in rows) <= 600 for rows in read)
        assert any(len(rows) > 1 for rows in read)


def test_a_stamp_changes_with_everything_that_is_written(tmp_path):
    def stamps(name, given, **options):
        build(tmp_path / name, given, **options)
        with Index(tmp_path / name) as index:
            what = contents.Contents.of(index, "notes", several=True)
            return [row.stamp for rows in contents.batches(index, what, weights=True) for row in rows]

    first = Document("a", "fox", "Title", metadata={"year": 1})
    (before,) = stamps("one", [first])
    assert stamps("same", [first]) == [before]
    changed = [
        Document("a", "fox", "Title", metadata={"year": 2}),
        Document("a", "fox", "Titles", metadata={"year": 1}),
        Document("a", "fox", "Title", parent="b", metadata={"year": 1}),
    ]
    found = {stamps(str(i), [each])[0] for i, each in enumerate(changed)}
    found |= {stamps("codec", [first], codec="int4")[0], stamps("lexical", [first], lexical=None)[0]}
    assert len(found) == 5 and before not in found


def test_sparse_vectors_are_sorted_and_keep_their_sum():
    numbers, weights = contents.sparse_of({"fox": 0.5, "whale": 2.0, "sea": 1.0})
    assert numbers == sorted(set(numbers)) and sum(weights) == 3.5
    assert all(0 < number < 2**32 - 1 for number in numbers)


def test_columns_have_plain_names_that_differ():
    found = contents.columns_of("metadata_", ["a.b", "a b", "año", "a_b_2"])
    assert found == {
        "a.b": "metadata_a_b",
        "a b": "metadata_a_b_2",
        "año": "metadata_a_o",
        "a_b_2": "metadata_a_b_2_2",
    }


def test_ids_become_the_uuids_of_the_docs():
    assert contents.uuid_of("doc ü") == str(uuid.uuid5(uuid.NAMESPACE_OID, "doc ü"))


def test_collections_are_named_after_the_index(tmp_path):
    assert collection_name(tmp_path / "my notes.index") == "my_notes"
    assert collection_name(tmp_path / "2024.index") == "index_2024"


def test_a_query_must_be_one(notes):
    for k, text, why in ((10, " ", "empty"), (0, "fox", "from 1 up"), (10, "unknownword", "knows no word")):
        with pytest.raises(ConfigError, match=why):
            query_for(notes, "qdrant", text, k, workflow="lexical")
    with pytest.raises(ConfigError, match="unknown engine 'solr'"):
        query_for(notes, "solr", "fox")
    with pytest.raises(ConfigError, match="open here"):
        query_for("http://localhost:8000/notes", "qdrant", "fox")


def test_engines_import_no_client():
    modules = ["counterpoint.cli.export", *(f"counterpoint.exporters.{name}" for name in ENGINES)]
    clients = ("qdrant_client", "lancedb", "pymilvus", "httpx", "torch")
    code = f"import sys, importlib\nfor m in {modules!r}: importlib.import_module(m)\n"
    code += f"print([name for name in {clients!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
