"""Readers while an index is replaced: they see the old one or the new one, whole, and never an error."""

import multiprocessing
from collections import Counter

import pytest
from tests.fakes import HashModel

from counterpoint.errors import ArtifactError
from counterpoint.index import Index, IndexSettings, build, build_index
from counterpoint.index import opening as opening_module
from counterpoint.search import Searcher
from counterpoint.types import Document

OLD = [Document(f"old{i}", f"an old text about fox{i % 5}") for i in range(7)]
NEW = [Document(f"new{i}", f"a new text about fox{i % 7} and a bridge") for i in range(30)]


def rebuild(folder, stop):
    # Commits as fast as they come: what the disk has after a power loss is not looked at here.
    build.sync_file = build.sync_folder = lambda path: None
    at = 0
    while not stop.is_set():
        at += 1
        build_index((OLD, NEW)[at % 2], HashModel(), folder, overwrite=True)


def answers(index):
    """From everything that an index has: documents, postings, pooled vectors and words."""
    searcher = Searcher(index, HashModel())
    found = [
        searcher.search("about fox1", 3, workflow=w).hits for w in ("hybrid", "lexical", "dense", "words")
    ]
    return [[(hit.document.id, hit.document.text, hit.score) for hit in hits] for hits in found]


def whole(tmp_path, documents, **settings):
    build_index(documents, HashModel(), tmp_path, IndexSettings(**settings))
    with Index(tmp_path) as index:
        return answers(index)


def read_during_rebuilds(tmp_path, monkeypatch, opens, versions):
    """Open and search an index so often, and in so many versions, while another process replaces it.

    Returns:
        How often it was the old or the new one or something else, and how often it had to be opened again.
    """
    expected = {"old": whole(tmp_path / "old", OLD), "new": whole(tmp_path / "new", NEW)}
    build_index(OLD, HashModel(), tmp_path / "i")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.fakes", "tests.index.test_rebuild", "bm25s"])
    stop = context.Event()
    writer = context.Process(target=rebuild, args=(tmp_path / "i", stop))
    tally, seen, open_them = Counter(), set(), opening_module._open

    def counted(*given):
        tally["tried"] += 1
        return open_them(*given)

    monkeypatch.setattr(opening_module, "_open", counted)
    before = Index(tmp_path / "i")  # first searched when it has been replaced many times
    tally.clear()
    writer.start()
    try:
        while (tally["opened"] < opens or len(seen) < versions) and writer.is_alive():
            with Index(tmp_path / "i") as index:
                seen.add(index.manifest.segments[0].name)
                found = answers(index)
            kind = next((kind for kind, wanted in expected.items() if found == wanted), "wrong")
            tally.update([kind, "opened"])
        assert writer.is_alive(), "the writer failed"
    finally:
        stop.set()
        writer.join()
    assert writer.exitcode == 0
    assert answers(before) == expected["old"] and len(before.manifest.files) > 5
    before.close()
    return {**tally, "versions": len(seen), "again": tally["tried"] - tally["opened"]}


def test_readers_during_rebuilds(tmp_path, monkeypatch):
    found = read_during_rebuilds(tmp_path, monkeypatch, 40, 3)
    assert "wrong" not in found and found["opened"] >= 40


@pytest.mark.long
def test_a_thousand_readers_during_rebuilds(tmp_path, monkeypatch, say):
    found = read_during_rebuilds(tmp_path, monkeypatch, 1000, 100)
    say(f"readers during rebuilds: {found}")
    assert "wrong" not in found and found["opened"] >= 1000 and min(found["old"], found["new"]) > 50


@pytest.mark.parametrize("settings", [{}, {"ann": "hnsw"}, {"codec": "int4"}])
def test_an_index_opened_before_and_first_searched_after(tmp_path, settings):
    if "ann" in settings:
        pytest.importorskip("faiss")
    expected = whole(tmp_path / "same", OLD, **settings)
    whole(tmp_path / "i", OLD, **settings)
    with Index(tmp_path / "i") as opened:
        build_index(NEW, HashModel(), tmp_path / "i", IndexSettings(**settings), overwrite=True)
        assert not any((tmp_path / "i" / name).exists() for name in opened.manifest.files)
        assert answers(opened) == expected
        assert opened.document(0) == OLD[0] and opened.position_of("old6") == 6
        assert opened.distinct_ids("words") == 9 and opened.parents == {}


def racing(folder, times, monkeypatch):
    """Have the index replaced, so often, between reading its manifest and opening its files."""
    left, open_them = [times], opening_module._open

    def replaced_first(*given):
        if left[0]:
            left[0] -= 1
            build_index(NEW, HashModel(), folder, overwrite=True)
        return open_them(*given)

    monkeypatch.setattr(opening_module, "_open", replaced_first)


@pytest.mark.parametrize("times", [1, opening_module.OPENINGS - 1])
def test_an_open_that_races_a_commit_is_tried_again(tmp_path, monkeypatch, times):
    build_index(OLD, HashModel(), tmp_path / "i")
    racing(tmp_path / "i", times, monkeypatch)
    with Index(tmp_path / "i") as index:
        assert index.name_of(0) == "new0" and len(index) == len(NEW)


def test_it_is_not_tried_for_ever(tmp_path, monkeypatch):
    build_index(OLD, HashModel(), tmp_path / "i")
    racing(tmp_path / "i", opening_module.OPENINGS, monkeypatch)
    with pytest.raises(ArtifactError, match="this file of the index is missing"):
        Index(tmp_path / "i")


def test_damage_is_not_taken_for_a_race(tmp_path, monkeypatch):
    build_index(OLD, HashModel(), tmp_path / "i")
    next((tmp_path / "i").rglob("mean.values.npy")).unlink()
    tries, open_them = [], opening_module._open
    monkeypatch.setattr(opening_module, "_open", lambda *given: [tries.append(1), open_them(*given)][1])
    with pytest.raises(ArtifactError, match=r"mean.values.npy: this file of the index is missing"):
        Index(tmp_path / "i")
    assert len(tries) == 1
