"""What a merge of segments promises, for every kind of store and codec: a new one is found here by itself."""

import numpy as np
import pytest
from tests.contracts.test_stores import DIM, DOCUMENTS, EVERY, Model, asked, given

from counterpoint.errors import ArtifactError
from counterpoint.index import SetLayout
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.joining import JoinedWriter
from counterpoint.index.kinds import KINDS
from counterpoint.index.npy import NOTHING
from counterpoint.index.piece import Piece
from counterpoint.types import Document

FITTED = [each for each in EVERY if SetLayout(DIM, *each).fitted]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few rows have centroids, and few documents a sketch."""
    monkeypatch.setattr("counterpoint.index.centroids.LEAST_ROWS", 1)
    monkeypatch.setattr("counterpoint.index.centroids.ROWS", 8)
    monkeypatch.setattr("counterpoint.index.rows_writer.LEAST", 1)


def layout_of(kind, codec):
    return SetLayout(DIM, kind, codec, given(kind).ids is not None)


def built(folder, layout, which):
    """A segment of some documents, written at once."""
    folder.mkdir(parents=True)
    writer = KINDS[layout.kind].write(folder, "v", layout, NOTHING)
    writer.append(given(layout.kind).take(which), [Document(str(i), "") for i in which])
    writer.close()
    return Piece(CheckedFolder(folder), len(which), layout)


def with_deletes(piece, rng):
    live = rng.random(piece.documents) < 0.7
    live[rng.integers(piece.documents)] = True
    return Piece(piece.files, piece.documents, piece.layout, live)


def rows_of(piece):
    return np.arange(piece.documents) if piece.live is None else np.flatnonzero(piece.live)


def merged(folder, layout, pieces, fit=None, together=7):
    """One segment of the live documents of others, some at a time."""
    folder.mkdir(parents=True)
    if fit is None:
        writer = KINDS[layout.kind].write(folder, "v", layout, NOTHING)
    else:
        writer = JoinedWriter(folder, "v", layout, fit)
    for piece in pieces:
        for at in range(0, len(rows_of(piece)), together):
            writer.copy(piece, rows_of(piece)[at : at + together])
    writer.close()
    return Piece(CheckedFolder(folder), sum(len(rows_of(piece)) for piece in pieces), layout)


def cut(rng):
    """All documents as three runs of neighbours."""
    return np.split(np.arange(DOCUMENTS), np.sort(rng.choice(np.arange(1, DOCUMENTS), 2, replace=False)))


def as_format_1(piece):
    """Where each document's vectors begin, in place of how many they are."""
    lengths = piece.files.folder / "v.lengths.npy"
    if lengths.exists():
        offsets = np.concatenate([[0], np.cumsum(np.load(lengths))]).astype(np.uint64)
        np.save(lengths.with_name("v.offsets.npy"), offsets)
        lengths.unlink()
    return Piece(CheckedFolder(piece.files.folder), piece.documents, piece.layout, piece.live)


def store_of(pieces):
    return KINDS[pieces[0].layout.kind].open("v", pieces[0].layout, pieces).bound(Model())


def assert_same_answers(pieces, one):
    """To the last bit, whatever the live documents are asked; and of the others nothing is left."""
    before, after = store_of(pieces), store_of([one])
    starts = np.cumsum([0] + [piece.documents for piece in pieces])
    live = np.concatenate([start + rows_of(piece) for start, piece in zip(starts, pieces, strict=False)])
    every = np.arange(one.documents)
    assert len(live) == len(every) and np.array_equal(before.lengths[live], after.lengths)
    kept, now = before.take(live), after.take(every)
    assert np.array_equal(kept.values, now.values) and np.array_equal(kept.offsets, now.offsets)
    assert (kept.ids is None and now.ids is None) or np.array_equal(kept.ids, now.ids)
    queries = asked(after, given(one.layout.kind), exact=one.layout.kind == "exact")
    scores = after.all_scores(queries)
    assert np.array_equal(before.all_scores(queries)[:, live], scores)
    for query, row in zip(queries, scores, strict=True):
        assert np.array_equal(before.scores(query, live), row)
        assert np.array_equal(after.scores(query, every), row)
    if one.layout.ids:
        for counted, expected in zip(after.frequencies(), before.counts_of(live), strict=True):
            assert np.array_equal(counted, expected)


def contents(piece):
    return {path.name: path.read_bytes() for path in piece.files.folder.iterdir()}


@pytest.mark.parametrize("old", [False, True], ids=["new", "format 1"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind, codec", [each for each in EVERY if each not in FITTED], ids="-".join)
def test_a_merge_where_nothing_is_fitted_writes_what_a_build_writes(tmp_path, kind, codec, seed, old):
    if kind == "graph":
        pytest.importorskip("faiss")
    rng, layout = np.random.default_rng(seed), layout_of(kind, codec)
    runs = cut(rng)
    pieces = [with_deletes(built(tmp_path / str(i), layout, run), rng) for i, run in enumerate(runs)]
    if old:
        pieces = [as_format_1(piece) for piece in pieces]
    one = merged(tmp_path / "one", layout, pieces)
    assert_same_answers(pieces, one)
    left = np.concatenate([run[rows_of(piece)] for run, piece in zip(runs, pieces, strict=True)])
    assert contents(one) == contents(built(tmp_path / "at once", layout, left))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind, codec", FITTED, ids="-".join)
def test_rows_of_few_bits_are_copied(tmp_path, kind, codec, seed):
    """First fresh documents are coded by the fit that is there; then all that share it become one."""
    rng, layout = np.random.default_rng(seed), layout_of(kind, codec)
    fresh = SetLayout(DIM, kind, "int8", layout.ids)
    first, *others = cut(rng)
    base = with_deletes(built(tmp_path / "base", layout, first), rng)
    waiting = [with_deletes(built(tmp_path / str(i), fresh, run), rng) for i, run in enumerate(others)]
    coded = merged(tmp_path / "coded", layout, waiting, fit=[base])
    assert coded.documents == sum(len(rows_of(piece)) for piece in waiting)
    pieces = [base, with_deletes(coded, rng)]
    one = merged(tmp_path / "one", layout, pieces, fit=pieces)
    assert_same_answers(pieces, one)
    again = merged(tmp_path / "again", layout, [one], fit=[one], together=DOCUMENTS)
    assert contents(one) == contents(again)


@pytest.mark.parametrize("kind, codec", FITTED, ids="-".join)
def test_fresh_rows_are_fitted_as_a_build_of_them_would(tmp_path, kind, codec):
    """Of rows that waited in 8 bits, decoded: the files of a build that was given those rows."""
    rng, layout = np.random.default_rng(0), layout_of(kind, codec)
    fresh = SetLayout(DIM, kind, "int8", layout.ids)
    pieces = [with_deletes(built(tmp_path / str(i), fresh, run), rng) for i, run in enumerate(cut(rng))]
    one = merged(tmp_path / "one", layout, pieces)
    starts = np.cumsum([0] + [piece.documents for piece in pieces])
    live = np.concatenate([start + rows_of(piece) for start, piece in zip(starts, pieces, strict=False)])
    (tmp_path / "at once").mkdir()
    writer = KINDS[kind].write(tmp_path / "at once", "v", layout, NOTHING)
    writer.append(store_of(pieces).take(live), [Document(str(i), "") for i in live])
    writer.close()
    assert contents(one) == contents(Piece(CheckedFolder(tmp_path / "at once"), len(live), layout))


def test_a_word_whose_rows_have_no_mean_beside_rows_that_have_one_is_refused(tmp_path):
    """Joined, the rows without would be read as differences from the mean of the others."""
    layout = layout_of("exact", "1-bit")
    one, other = (built(tmp_path / name, layout, np.arange(DOCUMENTS)) for name in ("one", "other"))
    for key in ("means", "mean_scales", "mean_ranks"):
        path = other.files.folder / f"v.{key}.npy"
        np.save(path, np.load(path)[1:])
    damaged = Piece(CheckedFolder(other.files.folder), DOCUMENTS, layout)
    with pytest.raises(ArtifactError, match="the means of 'v' differ between segments"):
        merged(tmp_path / "joined", layout, [one, damaged], fit=[one, damaged])


@pytest.mark.parametrize("kind, codec", FITTED)
def test_new_rows_are_coded_as_copied_ones(tmp_path, kind, codec):
    """By the same fit: what is appended, and what another segment has in full precision."""
    layout, some = layout_of(kind, codec), np.arange(DOCUMENTS // 2)
    fit = [built(tmp_path / "fit", layout, np.arange(DOCUMENTS))]
    whole = built(tmp_path / "whole", SetLayout(layout.dim, kind, "float32", layout.ids), some)
    for name in ("appended", "copied"):
        (tmp_path / name).mkdir()
        writer = JoinedWriter(tmp_path / name, "v", layout, fit)
        if name == "copied":
            writer.copy(whole, some)
        else:
            writer.append(given(kind).take(some), [Document(str(i), "") for i in some])
        writer.close()
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / x).iterdir()} for x in ("appended", "copied")
    )
    assert one == two
