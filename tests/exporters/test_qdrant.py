"""Qdrant in this process: what it holds, and that it ranks as the index does."""

import pytest
from tests.exporters.notes import QUERIES, agree, build, documents, hits
from tests.exporters.sending import ask_qdrant
from tests.fakes import HashModel

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.exporters import query_for
from counterpoint.exporters.contents import uuid_of
from counterpoint.library.opened import OpenIndex
from counterpoint.types import Document

qdrant = pytest.importorskip("qdrant_client")


@pytest.fixture(scope="module")
def written(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("qdrant")
    with OpenIndex(folder, HashModel()) as notes:
        return place, notes.export_to("qdrant", folder=place)


def test_a_collection_is_not_overwritten(folder, tmp_path):
    with OpenIndex(folder, HashModel()) as notes, pytest.raises(ConfigError, match="collection of Qdrant"):
        notes.export_to("qdrant", folder=tmp_path, overwrite=True)


@pytest.fixture
def client(written):
    opened = qdrant.QdrantClient(path=str(written[0]))
    yield opened
    opened.close()


def test_everything_is_there(client, written, notes):
    points, _ = client.scroll("my_notes", limit=100, with_vectors=True)
    by_id = {point.payload["id"]: point for point in points}
    assert len(points) == len(by_id) == len(notes) == written[1]["written"]
    means = notes.index.take("mean", notes.index.positions)
    for i, position in enumerate(notes.index.positions.tolist()):
        document = notes.index.document(position)
        point = by_id[document.id]
        assert point.id == uuid_of(document.id)
        assert point.payload["metadata"] == dict(document.metadata)
        assert (point.payload["title"], point.payload["text"]) == (document.title, document.text)
        assert point.vector["mean"] == pytest.approx(means[i][0].tolist())
        assert ("words" in point.vector) == bool(document.text)
    assert (by_id["long#1"].payload["parent"], by_id["long#1"].payload["start"]) == ("long", 7)


@pytest.mark.parametrize("workflow", ["lexical", "dense", "words", "hybrid"])
@pytest.mark.parametrize("query", QUERIES)
def test_it_ranks_as_the_index_does(client, notes, workflow, query):
    theirs = ask_qdrant(client, query_for(notes, "qdrant", query, workflow=workflow))
    assert agree(hits(notes.search(query, workflow=workflow)), theirs)


def test_metadata_can_be_tested(client):
    late = {"key": "metadata.year", "range": {"gte": 2020}}
    found = qdrant.models.Filter.model_validate({"must": [late]})
    assert client.count("my_notes", count_filter=found).count == 10


def test_twice_changes_nothing_and_changes_are_written(tmp_path):
    build(tmp_path / "i", documents(5))
    with OpenIndex(tmp_path / "i", HashModel()) as notes:
        first = notes.export_to("qdrant", folder=tmp_path / "q")
        again = notes.export_to("qdrant", folder=tmp_path / "q")
        assert (first["written"], first["unchanged"]) == (7, 0)
        assert (again["written"], again["unchanged"]) == (0, 7)
        notes.update([{"id": "empty", "text": ""}])  # the same content, in another place
        assert notes.export_to("qdrant", folder=tmp_path / "q")["written"] == 0
        notes.delete("long")
        told = notes.export_to("qdrant", folder=tmp_path / "q")
        assert any("1 documents of the collection are not in this index" in line for line in told["not_held"])
        assert told["written"] == 5  # the average length changed, and with it the weights of terms


def test_an_interrupted_export_continues(folder, tmp_path, monkeypatch):
    from counterpoint.exporters import contents

    monkeypatch.setattr(contents, "READ", 10)

    def stop(done):
        if done == 20:
            raise KeyboardInterrupt

    with OpenIndex(folder, HashModel()) as notes:
        with pytest.raises(KeyboardInterrupt) as interrupt:
            notes.export_to("qdrant", folder=tmp_path, on_progress=stop)
        assert "the same command continues" in interrupt.value.__notes__[-1]
        told = notes.export_to("qdrant", folder=tmp_path)
        assert (told["written"], told["unchanged"]) == (22, 20)


def test_another_collection_of_that_name_is_left_alone(written, notes, tmp_path):
    build(tmp_path / "my_notes", [Document("a", "fox")], lexical=None)
    with OpenIndex(tmp_path / "my_notes", HashModel()) as other:
        with pytest.raises(ConfigError, match="has other vectors"):
            other.export_to("qdrant", folder=written[0])
        assert other.export_to("qdrant", folder=written[0], name="other")["written"] == 1


def test_a_server_that_is_away_is_an_error_of_a_line(notes):
    with pytest.raises(ArtifactError, match="the same command continues"):
        notes.export_to("qdrant", url="http://127.0.0.1:1")


def test_a_place_is_needed(notes, tmp_path):
    with pytest.raises(ConfigError, match="--url http://HOST:6333, or -o FOLDER"):
        notes.export_to("qdrant")
    with pytest.raises(ConfigError, match="--url"):
        notes.export_to("qdrant", url="http://127.0.0.1:1", folder=tmp_path)
