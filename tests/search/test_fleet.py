"""A search over shards elsewhere: bit for bit that of the same index in one process, or a clear error."""

from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import HashModel
from tests.index.test_changes import LAYOUTS
from tests.index.test_sharding import answers_of, documents

from counterpoint.errors import ConfigError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.index import centroids as centroids_module
from counterpoint.index.changing import changing
from counterpoint.search import Searcher
from counterpoint.search import fleet as fleet_module
from counterpoint.search.fleet import ShardGone, Threads
from counterpoint.search.shard import CommitMoved, Shard
from counterpoint.types import Document

SHARDS = 3
NAMES = [name for name in LAYOUTS if not name.startswith("shards")]


def fleet_of(folder, layout, numbers=range(SHARDS), **given):
    return Threads([Shard(folder, number, lambda index: layout.model) for number in numbers], **given)


@pytest.mark.parametrize("name", NAMES)
def test_shards_elsewhere_answer_as_the_index(name, tmp_path, monkeypatch):
    if name == "graph":
        pytest.importorskip("faiss")
    monkeypatch.setattr(centroids_module, "LEAST_ROWS", 1)
    monkeypatch.setattr(centroids_module, "ROWS", 8)
    layout = LAYOUTS[name]
    settings = replace(layout.settings, metadata={"year": "int"}, shards=SHARDS)
    build_index(documents(), layout.model, tmp_path / "i", settings)
    with Index(tmp_path / "i") as index, changing(index, layout.model) as change:
        change.delete([f"d{i}" for i in range(0, 60, 5)])
        change.add([Document(f"n{i}", "fox river dog", metadata={"year": 2003}) for i in range(6)])
    fleet = fleet_of(tmp_path / "i", layout)
    with Index(tmp_path / "i") as index:
        assert answers_of(fleet.over(index), layout) == answers_of(index, layout)
        assert answers_of(fleet.over(index), layout, "year > 2001") == answers_of(
            index, layout, "year > 2001"
        )
    fleet.close()


@pytest.fixture
def small(tmp_path):
    layout = LAYOUTS["int8"]
    build_index(documents(), layout.model, tmp_path / "i", replace(layout.settings, shards=SHARDS))
    with Index(tmp_path / "i") as index:
        yield index, layout


def test_a_shard_that_is_gone_is_an_error_or_is_told(small):
    index, layout = small
    for partial in (False, True):
        fleet = fleet_of(index.folder, layout, [0, 2], partial=partial)
        searcher = Searcher(fleet.over(index), layout.model, layout.searches[0])
        if not partial:
            with pytest.raises(ShardGone, match="shard 1 is not there"):
                searcher.search("fox", 50)
        else:
            with fleet.watched() as missing:
                found = {hit.id for hit in searcher.search("fox dog cat", 200)}
            assert missing == {1} and found
            (lost,) = [segment for segment in index.segments if segment.entry.shard == 1]
            assert not found & set(lost.database.names(range(lost.documents)))
            with pytest.raises(ShardGone):  # nobody asks what is missing
                searcher.search("fox", 50)
        fleet.close()


def test_a_shard_that_is_lost_after_it_proposed_gives_no_wrong_score(small, monkeypatch):
    index, layout = small
    fleet, send = fleet_of(index.folder, layout, partial=True), Threads.send

    def lost(self, number, call, *given, **named):
        return send(self, 7 if (number, call) == (1, "scores") else number, call, *given, **named)

    monkeypatch.setattr(Threads, "send", lost)
    searcher = Searcher(fleet.over(index), layout.model, layout.searches[0])
    with fleet.watched(), pytest.raises(ShardGone):
        searcher.search("fox dog cat", 200)
    fleet.close()


class Hangs(Future):
    """A call that never ends; keeps the times for which it is waited."""

    waited: list[float]

    def result(self, timeout=None):
        self.waited.append(timeout)
        raise TimeoutError


def test_after_a_shard_that_hangs_there_is_time_for_the_others(small, monkeypatch):
    index, layout = small
    fleet, send = fleet_of(index.folder, layout, partial=True, seconds=60), Threads.send
    Hangs.waited = []

    def hangs(self, number, call, *given, **named):
        return Hangs() if number == 1 else send(self, number, call, *given, **named)

    monkeypatch.setattr(Threads, "send", hangs)
    searcher = Searcher(fleet.over(index), layout.model, layout.searches[0])
    with fleet.watched() as missing:
        assert searcher.search("fox dog cat", 200).hits
    assert missing == {1} and len(Hangs.waited) == 1 and 10 < Hangs.waited[0] <= 30
    with fleet.watched(whole=True), pytest.raises(ShardGone, match=r"shard 1 gives no answer in \d+"):
        searcher.run({"q": "fox"}, 5)
    fleet.close()


def test_each_question_to_the_shards_has_half_of_what_is_left(small, monkeypatch):
    index, layout = small
    fleet, clock = fleet_of(index.folder, layout, partial=True, seconds=60), [0.0]
    Hangs.waited = []
    monkeypatch.setattr(fleet_module.time, "monotonic", lambda: clock[0])
    with fleet.watched() as missing:
        for at, number in ((0, 0), (30, 1), (45, 2), (70, 0)):
            clock[0] = at
            fleet.gathered({number: Hangs()})
    assert Hangs.waited == [30, 15, 7.5, 0] and missing == {0, 1, 2}
    fleet.close()


def test_a_search_never_mixes_two_commits(small):
    index, layout = small
    fleet = fleet_of(index.folder, layout)
    before = Searcher(fleet.over(index), layout.model, layout.searches[0])
    assert before.search("fox", 3).hits
    with changing(index, layout.model) as change:
        change.add([Document(f"new{i}", "fox fox fox") for i in range(9)])
    assert (
        before.search("fox", 3).hits
        == Searcher(index, layout.model, layout.searches[0]).search("fox", 3).hits
    )
    now = Searcher(fleet.over(index.refreshed()), layout.model, layout.searches[0])
    assert {hit.id[:3] for hit in now.search("fox fox fox", 3)} == {"new"}
    assert {hit.id[:3] for hit in before.search("fox fox fox", 3)} != {"new"}  # it is kept open
    late = fleet_of(index.folder, layout)
    with pytest.raises(CommitMoved, match="search again"):
        Searcher(late.over(index), layout.model, layout.searches[0]).search("fox", 3)
    late.close()
    fleet.close()


def test_a_shard_counts_over_the_whole_index_and_scores_its_own_documents(small):
    index, layout = small
    for number in range(SHARDS):
        mine = index.shard(number)
        assert mine.lexical.ceiling("fox unseen") == index.lexical.ceiling("fox unseen")
        ids = np.arange(20)
        assert mine.idf("words", ids).tolist() == index.idf("words", ids).tolist()
        assert len(mine.lexical.scores("fox")) == mine.end < index.end
    with pytest.raises(ConfigError, match="shard 7 has no documents; the index has 3 shards"):
        index.shard(7)


def test_an_index_without_shards_is_one_shard(tmp_path):
    build_index(documents(), HashModel(), tmp_path / "i", IndexSettings())
    with Index(tmp_path / "i") as index:
        fleet = fleet_of(tmp_path / "i", LAYOUTS["int8"], [0])
        one, other = (Searcher(each, HashModel()) for each in (index, fleet.over(index)))
        assert one.search("fox dog", 9, explain=True) == other.search("fox dog", 9, explain=True)
        fleet.close()
