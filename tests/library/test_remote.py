"""An index of a server answers as the same index that is open here."""

import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.serve.conftest import DOCUMENTS
from tests.serve.running import running

import counterpoint as cp
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.library.remote import RemoteIndex
from counterpoint.search.hits import answer_from

pytest.importorskip("httpx")
DOCUMENT = {"id": "a/b ü", "title": "", "text": "Trains leave from platform nine."}


@pytest.fixture
def serve():
    """Starts servers of some folders; their addresses."""
    with ExitStack() as servers:
        yield lambda indexes, **settings: servers.enter_context(running(indexes, **settings))


@pytest.fixture
def notes(tmp_path):
    cp.index(DOCUMENTS, tmp_path / "notes", model=None, metadata="year:int").close()
    return tmp_path / "notes"


def test_answers_are_those_of_the_index(serve, notes):
    remote, local = cp.open(serve({"notes": notes})), cp.open(notes)
    assert isinstance(remote, RemoteIndex) and len(remote) == len(local) == 3
    for asked in ({}, {"k": 1, "where": cp.field("year") >= 2020}, {"workflow": "lexical"}):
        assert remote.search("mammals of the sea", **asked) == local.search("mammals of the sea", **asked)
    several = ["sea", "platform nine"] * 40
    assert remote.search(several) == local.search(several)
    queries = {"q1": "sea fish", "q2": "platform"}
    assert remote.run(queries) == local.run(queries)
    assert remote.document("a/b ü") == local.document("a/b ü") == {**DOCUMENT, "metadata": {"year": 2024}}
    for index in (remote, local):
        with pytest.raises(ConfigError, match="no document 'nope'"):
            index.document("nope")
    local.close()
    remote.close()


def test_what_cannot_be_asked_is_an_error_of_ours(serve, notes):
    remote = RemoteIndex(serve({"notes": notes}))
    for name in (".", ".."):
        with pytest.raises(ConfigError, match=f"no document '{name}'"):
            remote.document(name)
    with pytest.raises(DataError, match="half a surrogate pair"):
        remote.search("\ud800 sea")
    remote.close()
    with pytest.raises(ArtifactError, match="has been closed"):
        remote.search("sea")


def test_a_write_that_was_accepted_is_finished_before_the_server_stops(notes, monkeypatch):
    from counterpoint.serve.served import Served

    add, begun, added = Served.add, threading.Event(), []

    def slow(served, documents, replace):
        begun.set()
        time.sleep(2.5)
        return add(served, documents, replace)

    monkeypatch.setattr(Served, "add", slow)
    with running({"notes": notes}, seconds=1.0) as place:
        remote = RemoteIndex(place)
        asking = threading.Thread(target=lambda: added.append(remote.add([{"id": "late", "text": "tide"}])))
        asking.start()
        assert begun.wait(30)
    asking.join()
    assert added == [1]
    with cp.open(notes) as local:
        assert local.document("late")["text"] == "tide"


@pytest.mark.parametrize("k", [1, 3, 5, 1000])
def test_a_run_is_that_of_the_index_with_passages_and_blank_queries(serve, tmp_path, k):
    """A document scores as its best passage, and more passages are found than documents are wanted."""
    documents = [
        {"id": f"d{at}", "text": " ".join(f"sea fish{at % (1 + place)} word{place}" for place in range(40))}
        for at in range(20)
    ]
    cp.index(documents, tmp_path / "notes", model=None, passage_words=10).close()
    queries = {"q": "sea fish3", "blank": " \n", "w": "word7 fish0", "none": "zzz", "q2": "fish1 sea"}
    queries |= {f"more{at}": f"fish{at} word{at}" for at in range(70)}
    with RemoteIndex(serve({"notes": tmp_path / "notes"})) as remote, cp.open(tmp_path / "notes") as local:
        expected = local.run(queries, k)
        found = remote.run(queries, k)
        assert found == expected and list(found) == list(expected)
        assert found.provenance == expected.provenance
        assert found["blank"] == found["none"] == [] and len(found["q"]) == min(k, 20)
        assert {name for name, _ in found["q"]} <= {document["id"] for document in documents}
        assert len(local) > 200
        assert remote.run({}, k) == local.run({}, k)


def test_explanations_come_with_their_places(notes):
    """But for rows, which are numbers of a model's vectors."""
    with cp.open(notes) as local:
        answer = local.search("whales of the sea", explain=True)
    again = answer_from(answer.to_dict())
    assert again.to_dict() == answer.to_dict()
    spans = [leaf.document for leaf in answer[0].explanation.leaves()]
    assert [leaf.document for leaf in again[0].explanation.leaves()] == spans


def test_changes_are_made_and_seen(serve, notes):
    with RemoteIndex(f"{serve({'notes': notes})}/notes") as remote:
        assert not remote.refresh()
        assert (
            remote.add([{"id": f"n{at}", "text": f"number {at} octopus", "year": at} for at in range(70)])
            == 70
        )
        assert remote.refresh() and len(remote) == 73
        assert remote.update([{"id": "n1", "text": "changed", "year": 1}]) == 1
        assert [hit.id for hit in remote.search("changed")] == ["n1"]
        with pytest.raises(DataError, match="'n1' is there already"):
            remote.add([{"id": "n1", "text": "again", "year": 1}])
        assert remote.delete(where="year < 100") == 70 and remote.delete("whales") == 1
        assert len(remote) == 2


def test_what_is_wrong_is_said(serve, notes):
    address = serve({"notes": notes})
    with RemoteIndex(address) as remote:
        with pytest.raises(ConfigError, match="unknown setting 'kk'"):
            remote.search("sea", kk=1)
        with pytest.raises(ConfigError, match="nope"):
            remote.search("sea", where="nope = 1")
        for documents in ("docs.jsonl", Path("docs.jsonl"), ["a text"]):
            with pytest.raises(ConfigError, match="expected a list of dictionaries"):
                remote.add(documents)
    with pytest.raises(ConfigError, match="no index 'other'"):
        RemoteIndex(f"{address}/other")
    with pytest.raises(ConfigError, match="serves one, two; name one"):
        RemoteIndex(serve({"one": notes, "two": notes}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ArtifactError, match="cannot be reached"):
        cp.open(f"http://127.0.0.1:{port}")


def test_a_key_is_sent(serve, notes, monkeypatch):
    address = serve({"notes": notes}, read_keys=("r" * 20,))
    with pytest.raises(ConfigError, match=r"needs a key; set .* COUNTERPOINT_KEY to a key of it"):
        RemoteIndex(address)
    with pytest.raises(ConfigError, match=r"does not know this key; set .* COUNTERPOINT_KEY"):
        RemoteIndex(address, key="w" * 20)
    with RemoteIndex(address, key="r" * 20) as remote:
        assert remote.search("sea")
    monkeypatch.setenv("COUNTERPOINT_KEY", "r" * 20)
    with cp.open(address) as remote:
        assert remote.search("sea")
