"""Shards behind Ray Serve: the answers of the index, replicas that come back, and a clear error."""

import os
import signal
import time

import pytest
from tests.fakes import HashModel
from tests.index.test_sharding import documents

from counterpoint.cluster.shards import ray_fleet
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.index.changing import changing
from counterpoint.search import Searcher
from counterpoint.search.fleet import ShardGone
from counterpoint.types import Document

pytestmark = pytest.mark.filterwarnings("ignore::Warning")  # of Ray about itself
QUERIES = ("fox", "quick brown fox", "unseen")


def asked(index, k=9):
    searcher = Searcher(index, HashModel())
    return [searcher.search(q, k, explain=True) for q in QUERIES] + [
        searcher.run(dict(zip(QUERIES, QUERIES, strict=True)), 50, workflow="words")
    ]


def eventually(what, seconds=60):
    end = time.monotonic() + seconds
    while True:
        try:
            return what()
        except ShardGone:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def test_shards_on_a_cluster_answer_as_the_index_and_follow_its_commits(ray, tmp_path):
    from ray import serve

    build_index(documents(), HashModel(), tmp_path / "i", IndexSettings(shards=2))
    with ray_fleet(tmp_path / "i", "local") as fleet, Index(tmp_path / "i") as index:
        assert asked(fleet.over(index)) == asked(index)
        assert serve.status().proxies == {}  # they would take the server's own port
        with changing(index, HashModel()) as change:
            change.add([Document(f"new{i}", "fox fox fox") for i in range(9)])
            change.delete(["d1", "d2"])
        now = index.refreshed()
        assert asked(fleet.over(now)) == asked(now) != asked(index)


@pytest.mark.long
def test_a_replica_that_is_killed_comes_back(ray, tmp_path):
    build_index(documents(), HashModel(), tmp_path / "i", IndexSettings(shards=2))
    with (
        ray_fleet(tmp_path / "i", "local", partial=True, seconds=10) as fleet,
        Index(tmp_path / "i") as index,
    ):
        whole = asked(fleet.over(index))
        os.kill(fleet.send(1, "process").result(), signal.SIGKILL)
        with fleet.watched() as missing:
            Searcher(fleet.over(index), HashModel()).search("fox", 9)
        assert missing <= {1}  # it may be back already
        assert eventually(lambda: asked(fleet.over(index))) == whole
