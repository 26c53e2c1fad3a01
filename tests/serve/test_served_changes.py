"""While an index is rebuilt, compacted or gone, answers are of the old commit, the new one, or a 503."""

import logging
import re
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from tests.serve.running import running

import counterpoint as cp
from counterpoint.errors import ArtifactError

IDS = [f"d{number}" for number in range(12)]
READERS = 4


def documents(generation):
    return [{"id": name, "text": f"sea {name} generation{generation}"} for name in IDS]


def rebuild(folder, generation):
    cp.index(documents(generation), folder, model=None, overwrite=True).close()


def change_and_compact(folder, generation):
    """One commit has all documents of a generation; the commits around it change none of them."""
    with cp.open(folder) as notes:
        notes.update([{"id": "other", "text": "land"}])
        notes.update(documents(generation))
        notes.delete("other", missing_ok=True)
        notes.compact()


def remove_and_bring_back(folder, generation):
    shutil.rmtree(folder, ignore_errors=True)  # the server may write it
    time.sleep(0.05)
    cp.index(documents(generation), folder, model=None).close()


def generations(texts):
    return {re.search(r"generation(\d+)", text)[1] for text in texts}


def search(client):
    found = client.post("/v1/indexes/notes/search", json={"query": "sea", "k": 50, "workflow": "lexical"})
    if found.status_code == 200:
        assert sorted(hit["id"] for hit in found.json()["hits"]) == sorted(IDS)
        return found, [hit["text"] for hit in found.json()["hits"]]
    return found, []


def document(client):
    found = client.get("/v1/indexes/notes/documents/d7")
    return found, [found.json()["document"]["text"]] if found.status_code == 200 else []


def rerank(client):
    found = client.post("/v1/indexes/notes/rerank", json={"query": "sea", "ids": IDS, "k": 50})
    if found.status_code == 200:
        assert sorted(hit["id"] for hit in found.json()["hits"]) == sorted(IDS)
    return found, []


def rerank_texts(client):
    given = {"model": "notes", "query": "sea", "documents": ["sea", "land"]}
    found = client.post("/v1/rerank", json=given)
    if found.status_code == 200:
        assert [result["index"] for result in found.json()["results"]] == [0, 1]
    return found, []


def info(client):
    found = client.get("/v1/indexes")
    if found.status_code == 200:
        assert found.json()["indexes"][0]["documents"] >= len(IDS)
    return found, []


def add(client):
    given = {"documents": [{"id": "added", "text": "sky"}], "replace": True}
    return client.post("/v1/indexes/notes/documents", json=given), []


READS = (search, document, rerank, rerank_texts, info)
WRITES = (*READS, search, add)


@pytest.mark.filterwarnings("ignore:committed, but not compacted")  # the other side writes, or removed it
@pytest.mark.parametrize("change", [rebuild, change_and_compact, remove_and_bring_back])
@pytest.mark.parametrize(
    ("asking", "requests"),
    [
        pytest.param(READS, 100, id="reads"),
        pytest.param(READS, 1000, id="many-reads", marks=pytest.mark.long),
        pytest.param(WRITES, 1000, id="many-writes", marks=pytest.mark.long),
    ],
)
def test_answers_are_of_one_commit_while_the_index_changes(tmp_path, caplog, say, change, asking, requests):
    httpx = pytest.importorskip("httpx")
    folder, asked, done = tmp_path / "notes", count(), threading.Event()
    cp.index(documents(0), folder, model=None).close()
    statuses, of_commit, seen, latest, end = Counter(), {}, set(), 0, time.monotonic() + 300

    def read(address):
        with httpx.Client(base_url=address, timeout=60) as client:
            # Most answers may be that the index is away.
            while ((number := next(asked)) < requests or latest < 3 or len(seen) < 2) and not done.is_set():
                assert time.monotonic() < end
                found, texts = asking[number % len(asking)](client)
                statuses[found.status_code] += 1
                if found.status_code != 200:
                    assert found.status_code == 503, found.text
                    assert found.headers["content-type"] == "application/problem+json"
                    assert "the index cannot be used at the moment" in found.json()["detail"]
                elif texts:
                    (generation,) = generations(texts)
                    assert of_commit.setdefault(found.json()["commit"], generation) == generation
                    seen.add(generation)

    def write():
        nonlocal latest
        try:
            while not done.is_set():
                try:
                    change(folder, latest + 1)
                except ArtifactError:  # the server writes the index
                    time.sleep(0.02)
                else:
                    latest += 1
        finally:
            done.set()

    with caplog.at_level(logging.INFO), running({"notes": folder}) as address:
        with ThreadPoolExecutor(READERS + 1) as threads:
            writing = threads.submit(write)
            reading = [threads.submit(read, address) for _ in range(READERS)]
            try:
                for each in reading:
                    each.result()
            finally:
                done.set()
                writing.result()
        with httpx.Client(base_url=address) as client:
            change(folder, latest + 1)  # undisturbed; the one before may have left half an index
            found, texts = search(client)
            assert found.status_code == 200 and generations(texts) == {str(latest + 1)}
    assert len(seen) > 1 and statuses.total() >= requests
    assert not [record for record in caplog.records if record.exc_info or "Traceback" in str(record.msg)]
    if asking is READS and change is not remove_and_bring_back:
        assert statuses.keys() == {200}
    say(f"{change.__name__}: {dict(statuses)}, {latest} generations")
