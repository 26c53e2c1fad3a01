"""A compaction leaves what is found as it is, and files as a build would have written them."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import HashModel, StaticModel
from tests.index.test_damage import TokenModel

from counterpoint.errors import ArtifactError
from counterpoint.index import Index, IndexSettings, Manifest, build_index, centroids, merge_rule
from counterpoint.index.changing import changing
from counterpoint.index.compacting import compact
from counterpoint.index.disk_usage import fit_text
from counterpoint.index.manifest import FileEntry
from counterpoint.search import Searcher
from counterpoint.types import Document

WEIGHTS = {"lexical": 0.2, "mean": 0.2, "words": 0.6}
EXACT = {"weights": WEIGHTS, "exact": ["words"]}
PLAIN = {"weights": WEIGHTS}
QUERIES = ("text about 3 word1", "w2 x", "unseen")
LAYOUTS = {
    "int8 exact": (HashModel(), IndexSettings(search=EXACT)),
    "float16": (HashModel(), IndexSettings(search=PLAIN, codec="float16")),
    "1-bit exact": (HashModel(), IndexSettings(search=EXACT, codec="1-bit")),
    "2-bit": (HashModel(), IndexSettings(search=PLAIN, codec="2-bit")),
    "graph": (HashModel(), IndexSettings(search=PLAIN, ann="hnsw")),
    "static": (StaticModel(), IndexSettings(metadata={"year": "int"})),
    "lists": (TokenModel(), IndexSettings(codec="4-bit")),
    "BM25": (None, IndexSettings()),
}
FITTED = ("1-bit exact", "2-bit", "lists")


def documents(first, end):
    for i in range(first, end):
        yield Document(
            f"d{i}", f"text about {i} and word{i % 3} w{i % 7}{' x' * (i % 4)}", metadata={"year": i}
        )


@pytest.fixture
def small(monkeypatch):
    """Few documents are enough, and few rows have centroids."""
    monkeypatch.setattr(merge_rule, "ENOUGH", 12)
    monkeypatch.setattr(centroids, "LEAST_ROWS", 64)


def changed(folder, name):
    """An index of ten segments, with deletes in several."""
    model, settings = LAYOUTS[name]
    build_index(documents(0, 60), model, folder, settings)
    for i in range(60, 90, 3):
        with changing(Index(folder), model) as change:
            change.add(documents(i, i + 3))
    with changing(Index(folder)) as change:
        change.delete([f"d{i}" for i in range(0, 80, 7)])
    return Index(folder), model


def answers(index, model):
    searcher, found = Searcher(index, model), {}
    for workflow in ("lexical",) if model is None else ("hybrid", "lexical", "dense", "words"):
        if workflow in ("dense", "words") and set(index.layouts) != {"mean", "words"}:
            continue
        for query in QUERIES:
            hits = searcher.search(query, 90, workflow=workflow, explain=True).hits
            found[workflow, query] = [(hit.document, hit.score, hit.explanation) for hit in hits]
    return found


def vectors(index, model):
    bound = index if model is None else index.bound(model)
    return {
        (name, bound.name_of(int(position))): bound.take(name, np.array([position])).values
        for name in bound.layouts
        for position in bound.positions
    }


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_found_stays_and_files_are_as_built(tmp_path, name, small):
    before, model = changed(tmp_path / "i", name)
    found, kept = answers(before, model), vectors(before, model)
    assert compact(before, everything=True) >= 1
    after = before.refreshed()
    assert len(after.segments) == 1 and after.live is None
    assert after.manifest.faults(tmp_path / "i") == []
    assert after.names_of(after.positions) == before.names_of(before.positions)
    now = vectors(after, model)
    assert answers(before, model) == found  # whoever has it open goes on
    if name in FITTED:
        coded = [key for key in kept if int(key[1][1:]) < 60]  # rows of few bits are never coded again
        assert all(np.array_equal(now[key], kept[key]) for key in coded)
        for key in kept:
            np.testing.assert_allclose(now[key], kept[key], atol=0.6 if key[0] != "mean" else 0)
        return
    assert answers(after, model) == found
    assert all(np.array_equal(now[key], kept[key]) for key in kept)
    settings = LAYOUTS[name][1]
    build_index(map(before.document, before.positions.tolist()), model, tmp_path / "new", settings)
    ours, new = ({path.name: path for path in (tmp_path / x).glob("*/*/*")} for x in ("i", "new"))
    assert ours.keys() == new.keys()
    differ = {key for key in ours if ours[key].read_bytes() != new[key].read_bytes()}
    assert differ <= {"documents.sqlite", "blocks.npy"}  # of which every row has the same checksum


@pytest.mark.parametrize("name", FITTED)
def test_fresh_documents_get_a_fit_of_their_own(tmp_path, name, small, monkeypatch):
    """Where the last fit was made on fewer documents; then there are two, until all is encoded again."""
    monkeypatch.setattr(merge_rule, "ENOUGH", 12)
    model, settings = LAYOUTS[name]
    build_index(documents(0, 4), model, tmp_path / "i", settings)
    with changing(Index(tmp_path / "i"), model) as change:
        change.add(documents(4, 90))
    fresh = Index(tmp_path / "i")
    assert [each.entry.fit is None for each in fresh.segments] == [False, True]
    kept = vectors(fresh, model)
    compact(fresh, everything=True)
    after = fresh.refreshed()
    (first, one), (second, two) = ((each.entry.fit, each.entry.fitted) for each in after.segments)
    assert first != second and (one, two) == (4, 86)
    now = vectors(after, model)
    errors = [np.linalg.norm(now[key] - kept[key]) for key in kept if key[0] != "mean"]
    assert 0 < np.mean(errors) < np.mean([np.linalg.norm(kept[key]) for key in kept if key[0] != "mean"])
    assert compact(after, everything=True) == 0


def test_the_rule_alone_merges_what_is_due(tmp_path):
    index, _ = changed(tmp_path / "i", "int8 exact")
    assert len(index.segments) == 11 and compact(index) == 1
    assert [each.documents for each in index.refreshed().segments] == [60, 27]
    assert compact(index) == 0


def test_a_compaction_that_was_killed_goes_on(tmp_path, monkeypatch):
    """Each merge is a commit of its own."""
    index, model = changed(tmp_path / "i", "BM25")
    found = answers(index, model)

    def killed(done):
        if done > 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compact(index, everything=True, on_progress=killed)
    assert answers(index.refreshed(), model) == found
    assert {path.name for path in (tmp_path / "i").glob("segments/*")} == {
        entry.name for entry in Manifest.read(tmp_path / "i").segments
    }
    assert compact(index, everything=True) == 1 and answers(index.refreshed(), model) == found


def test_means_that_differ_are_refused(tmp_path, small):
    index, _ = changed(tmp_path / "i", "1-bit exact")
    compact(index)
    now = index.refreshed()
    assert len({each.entry.fit for each in now.segments}) == 1 and len(now.segments) == 2
    path = tmp_path / "i" / "segments" / now.segments[1].entry.name / "words.means.npy"
    entries = {name: entry for name, entry in now.manifest.files.items() if not name.endswith("blocks.npy")}
    means = np.load(path)
    np.save(path, means ^ 1)
    entries[path.relative_to(tmp_path / "i").as_posix()] = FileEntry.of(path)
    replace(now.manifest, files=entries).write(tmp_path / "i")
    with pytest.raises(ArtifactError, match="the means of 'words' differ between segments"):
        compact(Index(tmp_path / "i"), everything=True)
    assert len(Index(tmp_path / "i").segments) == 2


def test_an_index_of_which_nothing_is_left(tmp_path):
    index, model = changed(tmp_path / "i", "int8 exact")
    with changing(index) as change:
        change.delete(index.names_of(index.positions))
    now = index.refreshed()
    assert len(now) == 0 and compact(now, everything=True) == 0
    assert Searcher(now, model).search("text", 5).hits == ()
    with changing(now, model) as change:
        change.add(documents(0, 3))
    assert len(now.refreshed()) == 3
    shutil.rmtree(tmp_path / "i")


def test_info_says_how_many_documents_no_fit_has_seen(tmp_path, small):
    model, settings = LAYOUTS["2-bit"]
    build_index(documents(0, 20), model, tmp_path / "i", settings)
    assert Index(tmp_path / "i").info()["fit"] == {"seen": 20, "later": 0, "waiting": 0, "due": False}
    with changing(Index(tmp_path / "i"), model) as change:
        change.add(documents(20, 30))
        change.delete(["d0", "d1"])
    assert Index(tmp_path / "i").info()["fit"] == {"seen": 18, "later": 10, "waiting": 10, "due": False}
    with changing(Index(tmp_path / "i"), model) as change:
        change.add(documents(30, 42))
    fit = Index(tmp_path / "i").info()["fit"]
    assert fit == {"seen": 18, "later": 22, "waiting": 22, "due": True}
    assert fit_text(Index(tmp_path / "i").info()).endswith(
        "of which 22 are kept in 8 bits; compact --refit fits them to all"
    )
    compact(Index(tmp_path / "i"), everything=True)
    fit = Index(tmp_path / "i").info()["fit"]
    assert fit == {"seen": 40, "later": 0, "waiting": 0, "due": False}  # a fit of their own
    build_index(documents(0, 3), HashModel(), tmp_path / "j", LAYOUTS["float16"][1])
    assert Index(tmp_path / "j").info()["fit"] is None and fit_text({"fit": None}) == ""
