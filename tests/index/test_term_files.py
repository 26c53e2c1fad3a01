import numpy as np
import pytest

from counterpoint.errors import ArtifactError
from counterpoint.index import npy, term_files
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.term_files import TermFiles, TermFilesWriter, encoded

POSTINGS = {
    "a": {0: 1, 1: 2, 70: 300},
    "an": {70: 1},
    "fox": {document: 1 + document % 3 for document in range(0, 71, 2)},
    "zebra": {5: 70000},
    "ä": {69: 1},
    "東": {0: 1},
    "𝔘": {3: 4, 4: 4},
}


def write(folder, postings, documents=71, text=100):
    writer = TermFilesWriter(folder, sum(map(len, postings.values())), text)
    items = sorted(postings.items())
    for some in (items[:2], items[2:]):
        if some:
            writer.append(
                [encoded(term) for term, _ in some],
                np.array([len(found) for _, found in some]),
                np.array([document for _, found in some for document in found]),
                np.array([count for _, found in some for count in found.values()]),
            )
    writer.append_lengths(np.arange(documents, dtype=np.uint32))
    writer.close()
    return TermFiles(CheckedFolder(folder))


@pytest.mark.parametrize("narrow", [2**32, 1])
def test_terms_are_found_with_their_postings(tmp_path, monkeypatch, narrow):
    """Also where offsets are of 64 bits."""
    monkeypatch.setattr(npy, "NARROW", narrow)
    files = write(tmp_path, POSTINGS)
    for name in ("term_ends", "posting_ends"):
        assert np.load(tmp_path / f"{name}.npy").dtype == (np.uint32 if narrow > 1 else np.uint64)
    for _ in range(2):  # the second time from memory
        for term, found in POSTINGS.items():
            documents, counts = files.postings(term)
            assert dict(zip(documents.tolist(), counts.tolist(), strict=True)) == found
            assert files.frequency(term) == len(found)
        for term in ("", "A", "aa", "foxes", "zebras", "𝔙", "\ud800"):
            assert files.frequency(term) == 0 and [len(x) for x in files.postings(term)] == [0, 0]
    assert files.documents == 71 and files.length == sum(range(71)) and files.lengths[70] == 70


@pytest.mark.parametrize("step", [1, 2, 7, 64])
def test_a_term_is_found_between_any_others(tmp_path, monkeypatch, step):
    monkeypatch.setattr(term_files, "STEP", step)
    terms = [f"{prefix}{i}" for prefix in ("", "w", "é", "東") for i in range(0, 130, 2)]
    files = write(tmp_path, {term: {i % 71: 1} for i, term in enumerate(terms)}, text=2000)
    for i, term in enumerate(terms):
        assert files.postings(term)[0].tolist() == [i % 71]
        assert files.frequency(f"{term}x") == 0
    assert not any(
        files.frequency(f"{prefix}{i}") for prefix in ("", "w", "é", "東") for i in range(1, 130, 2)
    )


def test_what_is_remembered_does_not_grow_with_the_queries(tmp_path, monkeypatch):
    monkeypatch.setattr(term_files, "REMEMBERED", 3)
    files = write(tmp_path, POSTINGS)
    for term in (*POSTINGS, "x", "y", "z"):
        assert files.frequency(term) == len(POSTINGS.get(term, ()))
    assert len(files._known) == 3


def test_no_terms_and_no_documents(tmp_path):
    assert write(tmp_path / "a", {}).frequency("fox") == 0
    files = write(tmp_path / "b", {}, documents=0)
    assert (files.documents, files.length) == (0, 0)


def test_files_that_do_not_fit_are_refused(tmp_path):
    write(tmp_path, POSTINGS)
    np.save(tmp_path / "frequencies.npy", np.zeros(3, np.uint32))
    with pytest.raises(ArtifactError, match="do not fit one another"):
        TermFiles(CheckedFolder(tmp_path))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("lengths", lambda x: x[:60]),
        ("postings", lambda x: x[:10]),
        ("postings", lambda x: np.full_like(x, 255)),
        ("posting_ends", lambda x: x[::-1].copy()),
        ("frequencies", lambda x: x + np.uint32(1)),
        ("frequencies", lambda x: np.maximum(x, 2) - np.uint32(1)),
    ],
)
def test_postings_that_cannot_be_are_refused(tmp_path, name, change):
    """Such as no checksum finds, since somebody wrote them so."""
    write(tmp_path, POSTINGS)
    path = tmp_path / f"{name}.npy"
    np.save(path, change(np.load(path)))
    files = TermFiles(CheckedFolder(tmp_path))
    with pytest.raises(ArtifactError, match="the BM25 postings are damaged"):
        for term in POSTINGS:
            files.postings(term)


def test_a_writer_that_gives_up_leaves_nothing_that_reads_as_data(tmp_path):
    TermFilesWriter(tmp_path, 10, 10).abandon()
    assert all(len(np.load(path)) == 0 for path in tmp_path.iterdir())


@pytest.mark.parametrize("together", [1, 3, 2**17])
def test_every_term_is_read_some_at_a_time(tmp_path, monkeypatch, together):
    monkeypatch.setattr(term_files, "TOGETHER", together)
    files, found = write(tmp_path, POSTINGS), {}
    for part in files.every():
        ends = np.cumsum(part.sizes)
        terms = [part.text[a:b].tobytes().decode() for a, b in zip(ends - part.sizes, ends, strict=True)]
        assert len(terms) == 1 or part.frequencies.sum() <= together
        rows = iter(zip(part.documents.tolist(), part.counts.tolist(), strict=True))
        for term, frequency in zip(terms, part.frequencies.tolist(), strict=True):
            found[term] = dict(next(rows) for _ in range(frequency))
    assert found == POSTINGS and list(found) == sorted(found)
    assert list(write(tmp_path / "empty", {}).every()) == []


@pytest.mark.parametrize("name, number", [("frequencies", 0), ("posting_ends", 40), ("postings", 6)])
def test_damage_is_told_when_every_term_is_read(tmp_path, name, number):
    write(tmp_path, POSTINGS)
    array = np.load(tmp_path / f"{name}.npy")
    array[2] = number
    np.save(tmp_path / f"{name}.npy", array)
    with pytest.raises(ArtifactError, match="the BM25 postings are damaged"):
        list(TermFiles(CheckedFolder(tmp_path)).every())
