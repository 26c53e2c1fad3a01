"""A server whose shards are searched elsewhere: the same answers, followed commits, and told gaps."""

from concurrent.futures import Future

import pytest

pytest.importorskip("fastapi")
from starlette.testclient import TestClient  # noqa: E402

import counterpoint as cp  # noqa: E402
from counterpoint.library.opened import OpenIndex  # noqa: E402
from counterpoint.library.stored import encoder_of  # noqa: E402
from counterpoint.search.fleet import Threads  # noqa: E402
from counterpoint.search.shard import Shard  # noqa: E402
from counterpoint.serve.app import application  # noqa: E402
from counterpoint.serve.settings import ServeSettings  # noqa: E402

DOCUMENTS = [{"id": f"d{i}", "text": f"sea number {i} and word {i % 3}", "year": 2000 + i} for i in range(30)]
SEARCH = "/v1/indexes/notes/search"
BODY = {"query": "sea word 2", "k": 40, "explain": True}


@pytest.fixture
def folder(tmp_path, tiny_model):
    cp.index(DOCUMENTS, tmp_path / "notes", model=tiny_model, shards=3, metadata="year:int").close()
    return tmp_path / "notes"


@pytest.fixture
def serve(folder):
    opened = []

    def made(numbers=(0, 1, 2), partial=False):
        fleet = Threads([Shard(folder, number, encoder_of) for number in numbers], partial)
        app = application({"notes": folder}, ServeSettings(), {"notes": fleet})
        client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        opened.append((client.__enter__(), fleet))
        return client

    yield made
    for client, fleet in opened:
        client.__exit__(None, None, None)
        fleet.close()


def without_time(answer):
    return {name: value for name, value in answer.json().items() if name not in ("milliseconds", "index")}


def test_answers_are_those_of_the_index_and_follow_writes(serve, folder):
    client = serve()
    with cp.open(folder) as notes:
        for more in ({}, {"workflow": "words"}, {"where": "year > 2010"}):
            found = without_time(client.post(SEARCH, json={**BODY, **more}))
            commit = found.pop("commit")
            assert found == notes.search(BODY["query"], k=40, explain=True, **more).to_dict()
    added = client.post(
        "/v1/indexes/notes/documents", json={"documents": [{"id": "n", "text": "sea"}]}
    ).json()
    found = without_time(client.post(SEARCH, json=BODY))
    assert found["commit"] == added["commit"] != commit
    assert "n" in {hit["id"] for hit in found["hits"]}


def test_a_commit_between_two_questions_is_followed(folder):
    """The fleet is at the next commit already, and has never opened this one."""
    for ask in (
        lambda opened: {hit.id for hit in opened.search("sea", 50).hits},
        lambda opened: {name for name, _ in opened.run({"q": "sea"}, 50)["q"]},
    ):
        fleet = Threads([Shard(folder, number, encoder_of) for number in range(3)])
        with OpenIndex(folder, fleet=fleet) as opened, cp.open(folder) as writer:
            name = f"n{len(opened)}"
            writer.add([{"id": name, "text": "sea"}])
            assert name in ask(opened)
        fleet.close()


def test_a_shard_that_is_gone_is_503_or_named_in_the_answer(serve, folder):
    answer = serve(numbers=(0, 2)).post(SEARCH, json=BODY)
    assert answer.status_code == 503 and "shard 1 is not there" in answer.json()["detail"]
    answer = serve(numbers=(0, 2), partial=True).post(SEARCH, json=BODY)
    assert answer.status_code == 200 and answer.json()["missing_shards"] == [1]
    assert 0 < len(answer.json()["hits"]) < len(DOCUMENTS)
    assert "missing_shards" not in serve().post(SEARCH, json=BODY).json()


def test_a_shard_that_hangs_is_named_before_the_time_of_the_request_ends(serve, monkeypatch):
    """In the answer, or as the reason that there is none; whatever else asks for it is told, too."""
    send = Threads.send

    class Hangs(Future):
        def result(self, timeout=None):
            raise TimeoutError

    def hangs(self, number, call, *given, **named):
        return Hangs() if number == 1 else send(self, number, call, *given, **named)

    whole, partial = serve(), serve(partial=True)
    monkeypatch.setattr(Threads, "send", hangs)
    found = partial.post(SEARCH, json=BODY).json()
    assert found["missing_shards"] == [1] and found["hits"]
    for client, path, body in (
        (whole, SEARCH, BODY),
        (partial, "/v1/indexes/notes/run", {"queries": {"q": "sea"}}),
        (partial, "/v1/indexes/notes/rerank", {"query": "sea", "ids": [f"d{i}" for i in range(30)]}),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 503 and "shard 1 gives no answer in" in answer.json()["detail"]


def test_a_server_is_ready_if_its_shards_answer(serve):
    for ready in (serve(), serve(partial=True, numbers=(0, 2))):
        assert ready.get("/readyz").json() == {"status": "ready"}
    answer = serve(numbers=(0, 2)).get("/readyz")
    assert answer.status_code == 503 and answer.json()["detail"] == "notes: no answer from shard 1"
    answer = serve(partial=True, numbers=()).get("/readyz")
    assert answer.status_code == 503 and "shard 0, 1, 2" in answer.json()["detail"]
