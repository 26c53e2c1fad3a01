"""LanceDB in this process: what it holds, and that it ranks as the index does."""

import json

import numpy as np
import pytest
from tests.exporters.notes import QUERIES, agree, build, documents, hits
from tests.exporters.sending import ask_lancedb
from tests.fakes import HashModel

from counterpoint.errors import ConfigError
from counterpoint.exporters import query_for
from counterpoint.library.opened import OpenIndex
from counterpoint.types import Document

lancedb = pytest.importorskip("lancedb")


@pytest.fixture(scope="module")
def written(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("lancedb")
    with OpenIndex(folder, HashModel()) as notes:
        return place, notes.export_to("lancedb", folder=place)


@pytest.fixture
def table(written):
    return lancedb.connect(written[0]).open_table("my_notes")


def test_everything_is_there(table, written, notes):
    rows = {row["id"]: row for row in table.search().limit(1000).to_list()}
    assert len(rows) == len(notes) == written[1]["written"]
    means = notes.index.take("mean", notes.index.positions)
    words = notes.index.take("words", notes.index.positions)
    for i, position in enumerate(notes.index.positions.tolist()):
        document = notes.index.document(position)
        row = rows[document.id]
        assert json.loads(row["metadata"]) == dict(document.metadata)
        assert (row["title"], row["text"], row["parent"]) == (document.title, document.text, document.parent)
        assert row["metadata_year"] == document.metadata.get("year")
        np.testing.assert_array_equal(row["vector_mean"], means[i][0])
        np.testing.assert_array_equal(np.array(row["vector_words"]).reshape(-1, 16), words[i])
    assert table.count_rows("metadata_year >= 2020 and metadata_draft") == 5


@pytest.mark.parametrize("query", QUERIES)
def test_vectors_rank_as_in_the_index(table, notes, query):
    for workflow in ("dense", "words"):
        theirs = ask_lancedb(table, query_for(notes, "lancedb", query, workflow=workflow))
        assert agree(hits(notes.search(query, workflow=workflow)), theirs)


@pytest.mark.parametrize("query", QUERIES)
def test_its_own_bm25_finds_the_same_documents(table, notes, query):
    request = query_for(notes, "lancedb", query, k=60, workflow="lexical")
    theirs = [name for name, _ in ask_lancedb(table, request)]
    assert set(theirs) == {hit.id for hit in notes.search(query, 60, workflow="lexical")}


def test_a_hybrid_is_a_sum(table, notes):
    request = query_for(notes, "lancedb", QUERIES[0], k=5)
    assert [part["part"] for part in request["parts"]] == ["lexical", "mean", "words"]
    assert {part["request"]["k"] for part in request["parts"]} == {200}
    ours = {hit.id for hit in notes.search(QUERIES[0], 5)}
    assert len(ours & {name for name, _ in ask_lancedb(table, request)}) >= 4


def test_twice_changes_nothing_and_changes_are_written(tmp_path):
    build(tmp_path / "i", documents(5))
    with OpenIndex(tmp_path / "i", HashModel()) as notes:
        assert notes.export_to("lancedb", folder=tmp_path / "t")["written"] == 7
        again = notes.export_to("lancedb", folder=tmp_path / "t")
        assert (again["written"], again["unchanged"]) == (0, 7)
        notes.update([{"id": "empty", "text": "now a whale's"}, {"id": "it's", "text": "new"}])
        told = notes.export_to("lancedb", folder=tmp_path / "t")
        assert (told["written"], told["unchanged"]) == (2, 6)
        table = lancedb.connect(tmp_path / "t").open_table("i")
        assert table.count_rows() == 8
        found = ask_lancedb(table, query_for(notes, "lancedb", "now", workflow="lexical"))
        assert [name for name, _ in found] == ["empty"]


def test_another_table_of_that_name_is_left_alone(written, tmp_path):
    build(tmp_path / "my_notes", [Document("a", "fox")], lexical=None)
    with OpenIndex(tmp_path / "my_notes", HashModel()) as other:
        with pytest.raises(ConfigError, match="has other columns"):
            other.export_to("lancedb", folder=written[0])
