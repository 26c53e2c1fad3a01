"""Readers while an index is changed: each answers from one commit, whole, for as long as it has it open."""

import multiprocessing
import random
import threading
import time
from collections import Counter
from contextlib import contextmanager

import pytest
from tests.fakes import HashModel

from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.index.changing import changing
from counterpoint.index.compacting import compact
from counterpoint.search import Searcher
from counterpoint.types import Document

SETTINGS = IndexSettings(
    search={"weights": {"lexical": 0.5, "words": 0.5}, "exact": ["words"]}, metadata={"version": "int"}
)
QUERY = "fox1 bridge"


def documents(version):
    """Eight, in every other version four. What they score is the same in all versions of a kind."""
    count = 4 if version % 2 else 8
    return [
        Document(f"d{i}", f"about fox{i % 3} and a bridge v{version}", metadata={"version": version})
        for i in range(count)
    ]


def commit(folder, version):
    """Delete, add and replace in one change, and now and then make all segments one."""
    with Index(folder) as index, changing(index, HashModel()) as change:
        if version % 2:
            change.delete([f"d{i}" for i in range(4, 8)])
        change.add(documents(version), replace=True)
    if version % 3 == 0:
        with Index(folder) as index:
            compact(index, everything=True)


def keep_writing(folder, stop):
    version = 0
    while not stop.is_set():
        version += 1
        commit(folder, version)


def scored(index):
    """What is found by the parts whose scores no version changes."""
    searcher = Searcher(index, HashModel())
    return [
        [(hit.id, hit.score) for hit in searcher.search(QUERY, 9, workflow=workflow)]
        for workflow in ("lexical", "words", "hybrid")
    ]


def version_of(index, expected):
    """The version that an index is of, if everything that it says is of that one."""
    found = {each.id: each for each in map(index.document, index.positions.tolist())}
    (version,) = {each.metadata["version"] for each in found.values()}
    assert found == {each.id: each for each in documents(version)}
    assert int(index.matching(f"version = {version}").sum()) == len(found) == len(index)
    assert scored(index) == expected[version % 2]
    assert [hit.id for hit in Searcher(index).search(f"v{version}", 9, workflow="lexical")] == sorted(
        found, reverse=True
    )
    return version


@pytest.fixture
def expected(tmp_path):
    """What is found in versions of both kinds, of an index that was built at once."""
    found = []
    for version in (0, 1):
        build_index(documents(version), HashModel(), tmp_path / str(version), SETTINGS)
        with Index(tmp_path / str(version)) as index:
            found.append(scored(index))
    return found


@contextmanager
def writer_of(kind, folder):
    """One that commits until the end of the block."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.fakes", "tests.index.test_readers"])
    stop = context.Event() if kind == "process" else threading.Event()
    writer = (context.Process if kind == "process" else threading.Thread)(
        target=keep_writing, args=(folder, stop)
    )
    writer.start()
    try:
        yield writer
    finally:
        stop.set()
        writer.join()
    assert kind == "thread" or writer.exitcode == 0


class Reader(threading.Thread):
    """Opens, refreshes, and asks snapshots of before again, until it has seen so many versions."""

    def __init__(self, shared, expected, versions, seed):
        super().__init__()
        self.index, self.expected, self.versions = shared, expected, versions
        self.rng, self.tally, self.seen, self.error = random.Random(seed), Counter(), set(), None

    def run(self):
        held = [(self.index, version_of(self.index, self.expected))]
        deadline = time.monotonic() + 600  # for a busy machine
        try:
            while len(self.seen) < self.versions and time.monotonic() < deadline:
                how = self.rng.choice(("refreshed", "opened", "held"))
                self.tally[how] += 1
                if how == "held":
                    index, version = self.rng.choice(held)
                    assert version_of(index, self.expected) == version
                    continue
                self.index = self.index.refreshed() if how == "refreshed" else Index(self.index.folder)
                version = version_of(self.index, self.expected)
                assert version >= max(self.seen, default=0), "an older commit came back"
                self.seen.add(version)
                held = [held[0], *held[1:][-3:], (self.index, version)]
        except BaseException as error:
            self.error = error


def read_while_written(tmp_path, expected, kind, versions, say):
    folder = tmp_path / "i"
    build_index(documents(0), HashModel(), folder, SETTINGS)
    shared, unread = Index(folder), Index(folder)  # the second is first asked when all is over
    readers = [Reader(shared, expected, versions, seed) for seed in range(3)]
    with writer_of(kind, folder) as writer:
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert writer.is_alive(), "the writer failed"
    for reader in readers:
        if reader.error is not None:
            raise reader.error
        assert len(reader.seen) == versions and len(reader.tally) == 3
    assert version_of(unread, expected) == version_of(shared, expected) == 0
    tally = sum((reader.tally for reader in readers), Counter())
    say(f"readers next to a writer ({kind}): {dict(tally)}, {versions} versions each")
    now = unread.refreshed()
    named = {name for entry in now.manifest.segments for name in entry.folders()}
    assert {path.relative_to(folder).as_posix() for path in folder.glob("*/*")} == named


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_readers_see_one_commit_each(tmp_path, expected, kind, say):
    read_while_written(tmp_path, expected, kind, 5, say)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["thread", "process"])
def test_readers_see_one_commit_each_of_many(tmp_path, expected, kind, say):
    read_while_written(tmp_path, expected, kind, 150, say)


def read_and_tell(folder, asked, told):
    """A process that has an index open, and is asked for its version now and then."""
    index = Index(folder)
    told.put("open")
    while (ask := asked.get()) != "end":
        index = index.refreshed() if ask == "refresh" else index
        found = {index.document(position).metadata["version"] for position in index.positions.tolist()}
        told.put((found, len(index), scored(index)))


def test_a_reader_in_another_process_keeps_its_snapshot(tmp_path, expected):
    folder = tmp_path / "i"
    build_index(documents(0), HashModel(), folder, SETTINGS)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.fakes", "tests.index.test_readers"])
    asked, told = context.Queue(), context.Queue()
    reader = context.Process(target=read_and_tell, args=(folder, asked, told))
    reader.start()
    try:
        assert told.get(timeout=60) == "open"
        for version in range(1, 6):
            commit(folder, version)
            asked.put("now")
            before = version - 1 - (version - 1) % 2  # it refreshes after every second commit
            assert told.get(timeout=60) == ({before}, 8, expected[0])
            if version % 2 == 0:
                asked.put("refresh")
                assert told.get(timeout=60) == ({version}, 8, expected[0])
    finally:
        asked.put("end")
        reader.join()
    assert reader.exitcode == 0
