"""Milvus Lite: what it holds, and that it ranks as the index does."""

import pytest
from tests.exporters.notes import QUERIES, agree, build, documents, hits
from tests.exporters.sending import ask_milvus
from tests.fakes import HashModel

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.exporters import query_for
from counterpoint.library.opened import OpenIndex
from counterpoint.types import Document

pymilvus = pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")


@pytest.fixture(scope="module")
def written(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("milvus")
    with OpenIndex(folder, HashModel()) as notes:
        return place, notes.export_to("milvus", folder=place)


@pytest.fixture
def client(written):
    opened = pymilvus.MilvusClient(str(written[0] / "milvus.db"))
    yield opened
    opened.close()


def test_everything_is_there(client, written, notes):
    rows = {row["id"]: row for row in client.query("my_notes", filter="", output_fields=["*"], limit=1000)}
    assert len(rows) == len(notes) == written[1]["written"]
    assert any(line.startswith("words: a multi-vector set is left out") for line in written[1]["not_held"])
    means = notes.index.take("mean", notes.index.positions)
    for i, position in enumerate(notes.index.positions.tolist()):
        document = notes.index.document(position)
        row = rows[document.id]
        assert row["metadata"] == dict(document.metadata)
        assert (row["title"], row["text"], row["parent"]) == (
            document.title,
            document.text,
            document.parent or "",
        )
        assert row["vector_mean"] == pytest.approx(means[i][0].tolist())
    found = client.query("my_notes", filter='metadata["year"] >= 2020', output_fields=["id"])
    assert len(found) == 10


@pytest.mark.parametrize("query", QUERIES)
def test_it_ranks_as_the_index_does(client, notes, query):
    for workflow in ("dense", "lexical"):
        theirs = ask_milvus(client, query_for(notes, "milvus", query, workflow=workflow))
        assert agree(hits(notes.search(query, workflow=workflow)), theirs)


@pytest.mark.parametrize("query", QUERIES)
def test_a_hybrid_without_words_ranks_as_in_the_index(client, notes, query):
    theirs = ask_milvus(client, query_for(notes, "milvus", query))
    ours = notes.search(query, weights="lexical=1 mean=1 words=0", fusion="ceiling")
    # The weights keep their proportion, and all thirds make two thirds.
    assert agree([(name, score * 2 / 3) for name, score in hits(ours)], theirs)


def test_words_alone_cannot_be_asked(notes):
    with pytest.raises(ConfigError, match="Milvus holds none of its parts"):
        query_for(notes, "milvus", "whale", workflow="words")


def test_twice_changes_nothing_and_changes_are_written(tmp_path):
    build(tmp_path / "i", documents(5))
    with OpenIndex(tmp_path / "i", HashModel()) as notes:
        assert notes.export_to("milvus", folder=tmp_path / "m")["written"] == 7
        again = notes.export_to("milvus", folder=tmp_path / "m")
        assert (again["written"], again["unchanged"]) == (0, 7)
        notes.update([{"id": "empty", "text": "é" * 40_000}])
        told = notes.export_to("milvus", folder=tmp_path / "m")
        assert told["written"] > 0 and any("1 texts were cut to 65,535" in line for line in told["not_held"])


def test_another_collection_of_that_name_is_left_alone(written, tmp_path):
    build(tmp_path / "my_notes", [Document("a", "fox")], lexical=None)
    with OpenIndex(tmp_path / "my_notes", HashModel()) as other:
        with pytest.raises(ConfigError, match="has other fields"):
            other.export_to("milvus", folder=written[0])


def test_a_server_that_is_not_there_is_no_bug(notes):
    with pytest.raises(ArtifactError, match="Milvus: .*nothing was written") as raised:
        notes.export_to("milvus", url="http://127.0.0.1:9")
    assert raised.value.path == "http://127.0.0.1:9"
