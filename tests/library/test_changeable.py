"""Changing an index that is open: one commit, a snapshot that refreshes, and the model that it remembers."""

import threading

import pytest
from tests.fakes import HashModel

import counterpoint as cp
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index import Index
from counterpoint.loading import load_model

ROWS = [{"id": f"d{i}", "text": f"text about {i} and word{i % 3}", "year": 2000 + i} for i in range(6)]


@pytest.fixture
def notes(tmp_path):
    return cp.index(ROWS, tmp_path / "i", model=None)


def found(notes, query, **asked):
    return {hit.id for hit in notes.search(query, workflow="lexical", **asked)}


def test_changes_in_one_commit(notes):
    other = cp.open(notes.index.folder)
    with notes.writing() as changes:
        assert changes.add([{"id": "new", "text": "whales sing"}]) == 1
        assert changes.delete("d0") == 1
        assert changes.update([{"id": "d1", "text": "whales dive"}]) == 1
        assert found(notes, "whales") == set()  # not committed yet
    assert found(notes, "whales") == {"new", "d1"} and len(notes) == 6
    assert found(other, "whales") == set() and len(other) == 6
    assert other.refresh() and not other.refresh()
    assert found(other, "whales") == {"new", "d1"}


def test_an_error_in_the_block_changes_nothing(notes):
    before = notes.index.manifest
    with pytest.raises(ZeroDivisionError), notes.writing() as changes:
        changes.delete("d0")
        1 // 0  # noqa: B018
    assert notes.index.manifest == before and not notes.refresh()


def test_what_is_wrong_is_said(notes):
    with pytest.raises(DataError, match="'d0': already in the index"):
        notes.add([ROWS[0]])
    with pytest.raises(DataError, match="'x': no such document"):
        notes.delete("x")
    with pytest.raises(ConfigError, match="name the documents to delete, by their ids"):
        notes.delete()
    with pytest.raises(ConfigError, match="not by both"):
        notes.delete("d0", where="year = 1")
    with pytest.raises(ConfigError, match="unknown setting 'replaces'"):
        notes.add([], replaces=True)
    assert notes.delete("x", missing_ok=True) == 0
    assert notes.delete(where="year >= 2003") == 3 and len(notes) == 3


def test_a_compaction_that_fails_does_not_undo_the_commit(notes, monkeypatch):
    def fails(*_, **__):
        raise ArtifactError("another process is writing this index")

    monkeypatch.setattr(cp.OpenIndex, "compact", fails)
    with pytest.warns(UserWarning, match="committed, but not compacted"):
        notes.delete("d0")
    assert len(notes) == 5 and len(cp.open(notes.index.folder)) == 5


def test_many_small_commits_leave_few_segments(notes):
    for i in range(30):
        notes.add([{"id": f"new{i}", "text": f"note {i}"}])
    assert len(notes.index.segments) < 16 and len(notes) == 36


def test_passages_are_cut_as_the_index_was(tmp_path):
    long = " ".join(f"Sentence number {i} is here." for i in range(20))
    notes = cp.index([{"id": "a", "text": long}], tmp_path / "i", model=None, passage_words=20)
    assert len(notes) > 1
    assert notes.add([{"id": "b", "text": long}]) == len(notes) / 2
    with pytest.raises(DataError, match="is a passage"):
        notes.delete("b#1")
    notes.update([{"id": "b", "text": "short"}])
    assert sum(name.startswith("b") for name in notes.index.names_of(notes.index.positions)) == 1
    assert notes.delete("a") == 1 and len(notes) == 1


def test_the_model_goes_on_answering_after_a_change(tmp_path):
    model = HashModel()
    from counterpoint.index import build_index
    from counterpoint.types import Document

    build_index([Document("a", "fox dog"), Document("b", "cat")], model, tmp_path / "i")
    notes = cp.open(tmp_path / "i", model)
    assert notes.search("fox", workflow="dense").hits
    notes.add([{"id": "c", "text": "fox fox"}])
    assert {hit.id for hit in notes.search("fox", workflow="dense")} == {"a", "b", "c"}


@pytest.mark.minilm
@pytest.mark.slow
def test_a_refit_keeps_the_model_that_the_index_keeps(tmp_path):
    """One without a source is saved with the index, which a rebuild replaces."""
    model = load_model("minilm")
    model._origin = None
    notes = cp.index([{"id": "a", "text": "A whale sings."}], tmp_path / "i", model=model)
    notes.add([{"id": "b", "text": "Trains leave at nine."}])
    before = notes.index.manifest.model["name"]
    assert notes.compact(refit=True) == 1
    other = cp.open(tmp_path / "i")
    assert other.index.manifest.model["name"] not in (None, before)
    assert [hit.id for hit in other.search("animals of the ocean", k=1)] == ["a"]
    assert other.add([{"id": "c", "text": "A cat."}]) == 1


def test_of_two_threads_the_slower_does_not_go_back_to_an_older_commit(tmp_path, monkeypatch):
    path, go, slow = tmp_path / "notes", threading.Event(), threading.Event()
    cp.index([{"id": "a", "text": "A whale."}], path, model=None).close()
    read = Index.refreshed

    def refreshed(index):
        found = read(index)
        if not slow.is_set():
            slow.set()
            go.wait()
        return found

    with cp.open(path) as reader, cp.open(path) as writer:
        writer.add([{"id": "b", "text": "A shark."}])
        monkeypatch.setattr(Index, "refreshed", refreshed)
        first, second = (threading.Thread(target=reader.refresh) for _ in range(2))
        first.start()
        slow.wait()
        writer.add([{"id": "c", "text": "A train."}])
        second.start()
        second.join(0.3)  # before the first is done, if it may
        go.set()
        first.join()
        second.join()
        assert len(reader) == 3
