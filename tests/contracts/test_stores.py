"""What every kind of store promises, whatever its codec: a new kind or codec is found here by itself."""

import numpy as np
import pytest
from tests.index.test_bits import texts_of

from counterpoint.errors import ShapeError
from counterpoint.index import Among, Asked, SetLayout
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS
from counterpoint.index.kernels import maxsim_scores
from counterpoint.index.kinds import KINDS
from counterpoint.index.paths import Meter
from counterpoint.index.piece import Piece
from counterpoint.index.segment import SegmentWriter
from counterpoint.types import Document, Ragged

DIM, DOCUMENTS = 24, 50
TABLE = np.random.default_rng(7).normal(size=(100, DIM)).astype(np.float32)
EVERY = [
    (kind, codec) for kind in KINDS for codec in CODECS if kind != "static" or codec == "float32"
]  # a static set stores no vectors


class Model:
    def table(self, name):
        return TABLE


def given(kind):
    """Vectors that a kind can store."""
    several = texts_of(np.random.default_rng(0), DOCUMENTS, DIM)
    if SetLayout(DIM, kind, "float32").pooled:
        values = np.random.default_rng(0).normal(size=(DOCUMENTS, DIM)).astype(np.float32)
        return Ragged(values, np.arange(DOCUMENTS + 1))
    if kind == "lists":
        return Ragged(several.values, several.offsets)
    if kind == "static":
        return Ragged(TABLE[several.ids], several.offsets, several.ids)
    return several


def opened(folder, kind, codec, pieces):
    """A store over one segment for each piece."""
    vectors, segments = given(kind), []
    layout = SetLayout(DIM, kind, codec, vectors.ids is not None)
    for i, piece in enumerate(pieces):
        with SegmentWriter(folder / str(i), {"v": layout}) as writer:
            writer.append([Document(str(p), "") for p in piece], {"v": vectors.take(piece)})
        segments.append(Piece(CheckedFolder(folder / str(i)), len(piece), layout))
    return KINDS[kind].open("v", layout, segments).bound(Model()), vectors


@pytest.fixture(params=[0, 10**18], ids=["compiled", "numpy"])
def path(request, monkeypatch):
    """Both ways to multiply integers."""
    monkeypatch.setattr("counterpoint.index.paths.WORTH", request.param)
    if request.param:
        monkeypatch.setattr(Meter, "kernels", lambda self, products: None)


@pytest.fixture(params=EVERY, ids=lambda param: "-".join(param))
def stores(request, tmp_path, path, monkeypatch):
    """One segment, two segments, and what they were given."""
    kind, codec = request.param
    monkeypatch.setattr("counterpoint.index.centroids.LEAST_ROWS", 1)
    monkeypatch.setattr("counterpoint.index.centroids.ROWS", 1)
    if kind == "graph":
        pytest.importorskip("faiss")
    every = np.arange(DOCUMENTS)
    one, vectors = opened(tmp_path / "one", kind, codec, [every])
    two, _ = opened(tmp_path / "two", kind, codec, [every[:20], every[20:]])
    return one, two, vectors


def asked(store, vectors, exact=False):
    """Three queries, of one row each for a pooled set."""
    rng = np.random.default_rng(1)
    rows = [1, 1, 1] if store.layout.pooled else [5, 1, 18]
    queries = [rng.normal(size=(count, DIM)).astype(np.float32) for count in rows]
    if not exact:
        return [Asked(query) for query in queries]
    return [Asked(query, rng.choice(vectors.ids, len(query)), True) for query in queries]


def test_what_was_stored_is_told_apart_by_document(stores):
    for store in stores[:2]:
        vectors, some = stores[2], np.array([30, 3, 30, 0])
        taken = store.take(some)
        assert taken.lengths.tolist() == store.lengths[some].tolist() and taken.dim == DIM
        assert not store.take(some[:0]).lengths.tolist()
        if taken.ids is None:
            with pytest.raises(ShapeError, match="have none"):
                store.ids_of(some)
        else:
            told = [ids.tolist() for ids in store.ids_of(some)]
            assert told == [taken.ids_of(i).tolist() for i in range(4)] and not store.ids_of(some[:0])
        if store.layout.kind == "static":
            assert [set(taken.ids_of(i)) for i in range(4)] == [set(vectors.ids_of(i)) for i in some]
            continue
        assert store.lengths.tolist() == vectors.lengths.tolist()
        wanted = vectors.take(some)
        lengths = np.linalg.norm(wanted.values, axis=1)
        assert (np.linalg.norm(taken.values - wanted.values, axis=1) < lengths).all()
        assert (taken.ids is None and wanted.ids is None) or taken.ids.tolist() == wanted.ids.tolist()


def test_ids_are_counted_by_document(stores):
    vectors = stores[2]
    for store in stores[:2]:
        ids, counts = store.frequencies()
        wanted: dict[int, int] = {}
        for i in range(DOCUMENTS) if vectors.ids is not None else ():
            for number in set(vectors.ids_of(i).tolist()):
                wanted[number] = wanted.get(number, 0) + 1
        assert dict(zip(ids.tolist(), counts.tolist(), strict=True)) == wanted
        assert ids.tolist() == sorted(wanted)


@pytest.mark.parametrize("exact", [False, True])
def test_scores_do_not_depend_on_what_else_is_asked(stores, exact):
    """Integers give them to the last bit; sums of floats may take another order."""
    vectors = stores[2]
    if exact and vectors.ids is None:
        pytest.skip("rows without ids cannot match by them")
    for store in stores[:2]:
        queries, some = asked(store, vectors, exact), np.random.default_rng(2).permutation(DOCUMENTS)[:17]
        together = store.all_scores(queries)
        assert together.shape == (3, DOCUMENTS)
        for i, query in enumerate(queries):
            alone, picked = store.all_scores([query])[0], store.scores(query, some)
            np.testing.assert_allclose(alone, together[i], rtol=1e-5, atol=1e-4)
            np.testing.assert_allclose(picked, together[i][some], rtol=1e-5, atol=1e-4)
            if store.layout.codec in ("int8", "4-bit", "2-bit", "1-bit"):
                assert alone.tobytes() == together[i].tobytes()
                assert picked.tobytes() == together[i][some].tobytes()


def test_scores_are_those_of_the_vectors_as_they_are_told(stores):
    """By the oracle of MaxSim, over what `take` decodes; where vectors are integers, queries are rounded."""
    for store in stores[:2]:
        told = store.take(np.arange(DOCUMENTS))
        longest = float(np.linalg.norm(told.values, axis=1).max())
        for query, found in zip(
            asked(store, stores[2]), store.all_scores(asked(store, stores[2])), strict=True
        ):
            size = float(np.linalg.norm(query.rows, axis=1).sum())
            np.testing.assert_allclose(found, maxsim_scores(query.rows, told), atol=0.01 * size * longest)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.7])
def test_candidates_are_of_those_that_may_be_found(stores, share):
    vectors = stores[2]
    for store in stores[:2]:
        exact = store.layout.kind == "exact"
        queries = asked(store, vectors, exact)
        among = np.random.default_rng(3).random(DOCUMENTS) < share
        for i, query in enumerate(queries):
            found = store.look(queries).best(i, 7, Among(among))
            scores = np.where(among, store.all_scores([query])[0], -np.inf)
            wanted = min(7, int((scores > 0).sum() if exact else among.sum()))
            assert among[found].all() and len(set(found.tolist())) == len(found)
            most = (
                2 * wanted if store.layout.kind == "graph" else wanted
            )  # each segment's graph gives so many
            assert wanted <= len(found) <= most
            if share < 0.5:  # fewer than a graph would be followed for
                np.testing.assert_allclose(
                    np.sort(scores[found]), np.sort(scores)[DOCUMENTS - wanted :], rtol=1e-5, atol=1e-5
                )


def test_candidates_are_the_best_and_their_scores_exact(stores):
    vectors = stores[2]
    for store in stores[:2]:
        queries = asked(store, vectors)
        for exhaustive in (False, True):
            look = store.look(queries, exhaustive=exhaustive)
            for i, query in enumerate(queries):
                known = look.known(i, np.arange(DOCUMENTS))
                # What is told apart by centroids alone is nearly the best only among many.
                found = look.best(i, 20 if store.layout.kind == "lists" and known is None else 5)
                assert len(set(found.tolist())) == len(found) >= 5
                scores = store.scores(query, np.arange(DOCUMENTS))
                assert scores[found].max() >= scores.max() - 1e-3  # a graph takes the best of each segment
                assert np.sort(scores[found])[-5] >= np.sort(scores)[-5] - 1e-3
                assert known is not None or not exhaustive
                if known is not None:
                    known = look.known(i, found)
                    np.testing.assert_allclose(known, scores[found], rtol=1e-5, atol=1e-4)
                    assert len(found) == 5 and set(look.best(i, 3)) <= set(found)


@pytest.mark.parametrize("exact", [False, True])
def test_rows_that_matched_add_up_to_the_score(stores, exact):
    vectors = stores[2]
    if exact and vectors.ids is None:
        pytest.skip("rows without ids cannot match by them")
    for store in stores[:2]:
        for query in asked(store, vectors, exact):
            positions = np.array([7, 49, 0])
            for position, (rows, values) in zip(positions, store.best_rows(query, positions), strict=True):
                (score,) = store.scores(query, np.array([position]))
                assert values.sum() == pytest.approx(score, rel=1e-5, abs=1e-4)
                assert len(rows) == len(query.rows) and rows.max(initial=-1) < store.lengths[position]
