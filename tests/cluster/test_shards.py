"""Shards on Ray Serve: the answers of the index, replicas that come back, and a clear error."""

import os
import signal
import time
from contextlib import contextmanager

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


@pytest.mark.slow
def test_servers_share_shards_until_the_last_one_leaves(ray, tmp_path):
    from ray import serve

    build_index(documents(), HashModel(), tmp_path / "i", IndexSettings(shards=2))
    with Index(tmp_path / "i") as index, ray_fleet(tmp_path / "i", "local", seconds=60) as second:
        with ray_fleet(tmp_path / "i", "local", seconds=60) as first:
            processes = [first.send(number, "process").result(60) for number in (0, 1)]
        assert [second.send(number, "process").result(60) for number in (0, 1)] == processes
        assert asked(second.over(index)) == asked(index) and second.silent(index) == set()
        (name,) = serve.status().applications
        serve.delete(name)  # as somebody else may do
        assert second.silent(index) == {0, 1}
        with pytest.raises(ShardGone, match="was stopped on the cluster: start this server again"):
            asked(second.over(index))
    assert serve.status().applications == {}


@contextmanager
def two_shards(folder, seconds):
    """An index of two shards, and processes that search it and may be missing."""
    build_index(documents(), HashModel(), folder, IndexSettings(shards=2))
    with ray_fleet(folder, "local", partial=True, seconds=seconds) as fleet, Index(folder) as index:
        yield fleet, index


@pytest.mark.long
def test_a_shard_whose_process_hangs_is_missing(ray, tmp_path):
    with two_shards(tmp_path / "i", 6) as (fleet, index):
        process = fleet.send(1, "process").result(60)
        asked(fleet.over(index))  # both are open
        os.kill(process, signal.SIGSTOP)
        try:
            started = time.monotonic()
            with fleet.watched() as missing:
                assert Searcher(fleet.over(index), HashModel()).search("fox", 9).hits
            assert missing == {1} and time.monotonic() - started < 6
        finally:
            os.kill(process, signal.SIGCONT)


@pytest.mark.long
def test_a_replica_that_is_killed_comes_back(ray, tmp_path):
    with two_shards(tmp_path / "i", 10) as (fleet, index):
        whole = asked(fleet.over(index))
        os.kill(fleet.send(1, "process").result(), signal.SIGKILL)
        with fleet.watched() as missing:
            Searcher(fleet.over(index), HashModel()).search("fox", 9)
        assert missing <= {1}  # it may be back already
        assert eventually(lambda: asked(fleet.over(index))) == whole
