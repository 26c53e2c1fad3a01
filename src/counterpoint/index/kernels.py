"""Scores over packed arrays, in numpy. Each function has a slow oracle in the tests and a twin in `score`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int, Shaped

from counterpoint.errors import ShapeError
from counterpoint.types import Ragged

__all__ = ["best_rows", "dot_scores", "idf_of", "maxsim_scores", "maxsim_table"]

ROWS = 256  # of queries that are multiplied at a time
TILE = 64  # documents, a multiple of what BLAS multiplies at a time
PRODUCTS = 2**17  # similarities held at a time: half a MiB, which a core's own cache has room for


def dot_scores(
    queries: Float[np.ndarray, "q d"], documents: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "q n"]:
    """Inner product of every query with every document."""
    _check_dims(queries, documents)
    cut = len(documents) - len(documents) % TILE
    # BLAS adds up in another order where rows do not fill its tiles, so zeros fill the last one.
    last = np.zeros((TILE, documents.shape[1]), documents.dtype)
    last[: len(documents) - cut] = documents[cut:]
    rest = (queries @ last.T)[:, : len(documents) - cut]
    return np.concatenate([queries @ documents[:cut].T, rest], axis=1)


def maxsim_scores(
    query: Float[np.ndarray, "m d"],
    documents: Ragged,
    ids: Int[np.ndarray, " m"] | None = None,
    floor: bool = False,
) -> Float[np.ndarray, " n"]:
    """MaxSim of one query against packed documents: the sum over query rows of the best inner product.

    An empty query or an empty document scores 0 (ColBERT, eq. 3 over no terms).

    Args:
        query: its rows.
        documents: what is scored; with ids, if rows are to match by them.
        ids: of the query's rows; where given, two rows with different ids have similarity 0 (exact matching,
            Hofstätter et al. 2022, eq. 15).
        floor: raise a negative best similarity to 0.
    """
    packed = Ragged(query, np.array([0, len(query)]), ids)
    return maxsim_table(packed, documents, exact=ids is not None, floor=floor)[0]


def maxsim_table(
    queries: Ragged, documents: Ragged, *, exact: bool = False, floor: bool = False
) -> Float[np.ndarray, "q n"]:
    """`maxsim_scores` of every query with every document.

    The rows of several queries are multiplied with a piece of the documents at a time, small enough that the
    products are still in the cache when the greatest are looked for, along rows that lie one after the other.

    Args:
        queries: what is asked; with ids, if rows are to match by them.
        documents: what is scored; with ids, if rows are to match by them.
        exact: two rows with different ids have similarity 0.
        floor: raise a negative best similarity to 0.
    """
    _check_dims(queries.values, documents.values)
    scores = np.zeros((len(queries), len(documents)), np.float32)
    asked = list(_runs(queries, ROWS))
    width = min(ROWS, max(1, len(queries.values)))
    for pieces, stored, starts in _runs(documents, PRODUCTS // width):
        columns = documents.values[stored].T
        for some, rows, firsts in asked:
            similarity = queries.values[rows] @ columns
            if exact:
                similarity[_ids(queries)[rows, None] != _ids(documents)[stored]] = 0
            best = np.maximum.reduceat(similarity, starts, axis=1)
            if floor:
                np.maximum(best, 0, out=best)
            scores[np.ix_(some, pieces)] = np.add.reduceat(best, firsts, axis=0)
    return scores


def _runs(packed: Ragged, most: int) -> Iterator[tuple[Int[np.ndarray, " k"], slice, Int[np.ndarray, " k"]]]:
    """Sets that have rows, as many at a time as have at most `most` of them together (one at least).

    Yields:
        Their positions, their rows, and where in these each set begins. Empty sets are left out, since
        `reduceat` needs strictly increasing starts.
    """
    filled = np.flatnonzero(packed.lengths > 0)
    firsts, ends = packed.offsets[filled], packed.offsets[filled + 1]
    at = 0
    while at < len(filled):
        end = max(at + 1, int(np.searchsorted(ends, firsts[at] + most, side="right")))
        yield filled[at:end], slice(firsts[at], ends[end - 1]), firsts[at:end] - firsts[at]
        at = end


def best_rows(
    query: Float[np.ndarray, "m d"],
    document: Ragged,
    ids: Int[np.ndarray, " m"] | None = None,
    floor: bool = False,
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """For each query row, the document row that `maxsim_scores` takes, and what it adds to the score.

    The first of equals; -1 where no row gave the score: an empty document, no row with the same id, a best
    similarity below the floor.

    Args:
        query: its rows.
        document: one set.
        ids: as for `maxsim_scores`.
        floor: as for `maxsim_scores`.
    """
    if not len(document.values):
        return np.full(len(query), -1), np.zeros(len(query), np.float32)
    similarity = _similarity(document, query, ids).T
    best = similarity.argmax(axis=1)
    values = similarity[np.arange(len(query)), best]
    unmatched = np.zeros(len(query), bool)
    if ids is not None:
        unmatched |= document.ids_of(0)[best] != ids
    if floor:
        unmatched |= values < 0
        values = np.maximum(values, 0)
    return np.where(unmatched, -1, best), values


def idf_of(df: Shaped[np.ndarray, " n"], documents: int) -> Float[np.ndarray, " n"]:
    """ln(1 + (N − df + ½) / (df + ½)) of words that stand in `df` of N documents; never negative (Lucene)."""
    df = np.asarray(df, dtype=np.float64)
    return np.log1p((documents - df + 0.5) / (df + 0.5)).astype(np.float32)


def _similarity(
    documents: Ragged, query: Float[np.ndarray, "m d"], ids: Int[np.ndarray, " m"] | None
) -> Float[np.ndarray, "n m"]:
    """Inner products of all rows with all query rows; 0 where `ids` say that they may not match."""
    similarity = documents.values @ query.T
    if ids is not None:
        similarity[_ids(documents)[:, None] != ids] = 0
    return similarity


def _ids(packed: Ragged) -> Int[np.ndarray, " n"]:
    if packed.ids is None:
        raise ShapeError("exact matching needs vectors with ids, and some carry none")
    return packed.ids


def _check_dims(queries: np.ndarray, documents: np.ndarray) -> None:
    if queries.shape[1] != documents.shape[1]:
        raise ShapeError(
            f"query vectors of {queries.shape[1]} dimensions, document vectors of {documents.shape[1]}; "
            "was the index built with another model?"
        )
