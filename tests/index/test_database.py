import threading

import pytest
from tests.fakes import HashModel

from counterpoint.errors import ArtifactError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.index import database as module
from counterpoint.types import Document


@pytest.fixture
def names(tmp_path):
    """How an open index reads ids, and its database."""
    found = [Document(f"d{i}", "fox") for i in range(50)]
    build_index(found, HashModel(), tmp_path / "index", IndexSettings())
    with Index(tmp_path / "index") as index:
        yield index.segments[0].database


def test_ids_are_read_once_and_come_in_the_order_asked_for(names, monkeypatch):
    assert names.names([3, 1, 3]) == ["d3", "d1", "d3"]
    monkeypatch.setattr(names, "_answer", lambda *given: pytest.fail("read again"))
    assert names.names([1, 3]) == ["d1", "d3"]


def test_no_more_ids_are_kept_than_the_bound(names, monkeypatch):
    monkeypatch.setattr(module, "KNOWN", 8)
    for at in range(0, 50, 5):
        assert names.names([0, *range(at, at + 5)]) == ["d0", *(f"d{i}" for i in range(at, at + 5))]
        assert len(names._known) <= 8


def test_threads_may_read_ids_at_the_same_time(names, monkeypatch):
    monkeypatch.setattr(module, "KNOWN", 8)
    wrong = []

    def read(seed):
        for i in range(300):
            rows = [(seed + i * step) % 50 for step in range(6)]
            try:
                if names.names(rows) != [f"d{row}" for row in rows]:
                    wrong.append(rows)
            except KeyError as error:
                wrong.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_closed_database_answers_nothing_not_even_what_it_knew(names):
    names.names([1])
    names.close()
    with pytest.raises(ArtifactError, match="closed"):
        names.names([1])
