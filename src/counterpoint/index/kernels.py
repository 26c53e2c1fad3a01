"""Scores over packed arrays, in numpy. Each function has a slow oracle in the tests and a twin in `score`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt32

from counterpoint.errors import ShapeError
from counterpoint.types import Ragged

__all__ = [
    "BUCKET",
    "Products",
    "best_of_similarities",
    "best_rows",
    "check_dims",
    "documents_near",
    "dot_scores",
    "idf_of",
    "maxsim_by",
    "maxsim_scores",
    "maxsim_table",
    "runs_of",
    "summed",
]

BUCKET = 32  # rows, of which only the first one's document is stored
ROWS = 256  # query rows multiplied at a time
PRODUCTS = 2**17  # similarities held at a time: half a MiB, which fits a core's own cache


def dot_scores(
    queries: Float[np.ndarray, "q d"], documents: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "q n"]:
    """Inner product of every query with every document, summed in double precision and rounded once.

    BLAS adds in an order that depends on the number of rows. In single precision this would change the last
    digit, and a document's score would depend on the other documents of its segment.
    """
    check_dims(queries.shape[1], documents.shape[1])
    return (queries.astype(np.float64) @ documents.astype(np.float64).T).astype(np.float32)


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
        documents: with ids if `ids` is given.
        ids: of the query's rows. If given, two rows with different ids have similarity 0 (exact matching,
            Hofstätter et al. 2022, eq. 15).
        floor: raise a negative best similarity to 0.
    """
    packed = Ragged(query, np.array([0, len(query)]), ids)
    return maxsim_table(packed, documents, exact=ids is not None, floor=floor)[0]


def maxsim_table(
    queries: Ragged, documents: Ragged, *, exact: bool = False, floor: bool = False
) -> Float[np.ndarray, "q n"]:
    """`maxsim_scores` of every query with every document; with ids if `exact`."""
    check_dims(queries.dim, documents.dim)

    def products(stored: slice) -> Products:
        columns = documents.values[stored].T
        return lambda asked: queries.values[asked] @ columns

    ids = (_ids(queries), _ids(documents)) if exact else None
    return maxsim_by(products, (queries.offsets, documents.offsets), ids, floor=floor)


Products = Callable[[slice], Float[np.ndarray, "m n"]]
"""From rows of queries to their similarities with some stored rows."""


def maxsim_by(
    products: Callable[[slice], Products],
    offsets: tuple[Int[np.ndarray, " q1"], Int[np.ndarray, " n1"]],
    ids: tuple[Int[np.ndarray, " m"], Int[np.ndarray, " n"]] | None = None,
    *,
    floor: bool = False,
    most: int = PRODUCTS,
) -> Float[np.ndarray, "q n"]:
    """MaxSim of every query with every document, with given functions for the products.

    The rows of several queries are multiplied with a piece of the documents at a time. The piece is small
    enough that the products are still in the cache when the maxima are taken, along contiguous rows.

    Args:
        products: decodes a piece of the stored rows, and returns a function that multiplies query rows with
            it.
        offsets: where each query's rows begin, and each document's.
        ids: of the queries' rows and of the documents', for exact matching; else None.
        floor: raise a negative best similarity to 0.
        most: maximum number of stored rows decoded at a time.
    """
    asked, stored = offsets
    scores = np.zeros((len(asked) - 1, len(stored) - 1), np.float32)
    runs = list(_runs(asked, ROWS))
    width = min(ROWS, max(1, int(asked[-1])))
    for pieces, where, starts in _runs(stored, min(most, PRODUCTS // width)):
        multiply = products(where)
        for some, rows, firsts in runs:
            similarity = multiply(rows)
            if ids is not None:
                similarity[ids[0][rows, None] != ids[1][where]] = 0
            best = np.maximum.reduceat(similarity, starts, axis=1)
            if floor:
                np.maximum(best, 0, out=best)
            scores[np.ix_(some, pieces)] = summed(best, firsts) + np.float32(0)  # no score is −0
    return scores


def summed(best: Float[np.ndarray, "m n"], firsts: Int[np.ndarray, " q"]) -> Float[np.ndarray, "q n"]:
    """The sums of the rows of each query, in row order for any number of documents.

    numpy's own sums use another order for a single column than for many.
    """
    totals = best[firsts]
    for total, first, end in zip(totals, firsts, [*firsts[1:], len(best)], strict=True):
        for row in best[first + 1 : end]:
            total += row
    return totals


def _runs(
    offsets: Int[np.ndarray, " n1"], most: int
) -> Iterator[tuple[Int[np.ndarray, " k"], slice, Int[np.ndarray, " k"]]]:
    """Groups of non-empty sets with at most `most` rows together, or one set.

    Yields:
        The sets' positions, their rows, and where each set begins in these. Empty sets are left out, since
            `reduceat` needs strictly increasing starts.
    """
    filled = np.flatnonzero(np.diff(offsets) > 0)
    starts = np.append(offsets[filled], offsets[-1])
    for at, end in runs_of(starts, most):
        yield filled[at:end], slice(starts[at], starts[end]), starts[at:end] - starts[at]


def runs_of(offsets: Int[np.ndarray, " n1"], most: int) -> Iterator[tuple[int, int]]:
    """Runs of consecutive sets, first and end, with at most `most` rows together, or one set."""
    first = 0
    while first < len(offsets) - 1:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        end = max(last, first + 1)
        yield first, end
        first = end


def documents_near(offsets: Int[np.ndarray, " n1"]) -> UInt32[np.ndarray, " b"]:
    """The document of the first of every `BUCKET` rows, and the last document: 1/8 byte per row.

    The search for the document of a row starts there.
    """
    firsts = np.arange(0, offsets[-1], BUCKET)
    owners = np.searchsorted(offsets, firsts, side="right") - 1
    return np.append(owners, max(len(offsets) - 2, 0)).astype(np.uint32)


def best_rows(
    query: Float[np.ndarray, "m d"],
    document: Ragged,
    ids: Int[np.ndarray, " m"] | None = None,
    floor: bool = False,
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """For each query row, the document row that `maxsim_scores` uses, and its contribution to the score.

    The first row on ties; -1 if no row gave the score: the document is empty, has no row with the same id, or
    the best similarity is below the floor. `ids` and `floor` are those of `maxsim_scores`.
    """
    if not len(document.values):
        return np.full(len(query), -1), np.zeros(len(query), np.float32)
    both = None if ids is None else (ids, _ids(document))
    return best_of_similarities(query @ document.values.T, both, floor=floor)


def best_of_similarities(
    similarity: Float[np.ndarray, "m n"],
    ids: tuple[Int[np.ndarray, " m"], Int[np.ndarray, " n"]] | None = None,
    *,
    floor: bool = False,
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """`best_rows` from the similarities of the document's rows with the query's."""
    if ids is not None:
        similarity = np.where(ids[0][:, None] == ids[1], similarity, np.float32(0))
    best = similarity.argmax(axis=1)
    values = similarity[np.arange(len(similarity)), best]
    unmatched = np.zeros(len(similarity), bool)
    if ids is not None:
        unmatched |= ids[1][best] != ids[0]
    if floor:
        unmatched |= values < 0
        values = np.maximum(values, 0)
    return np.where(unmatched, -1, best), values


def idf_of(df: Shaped[np.ndarray, " n"], documents: int) -> Float[np.ndarray, " n"]:
    """ln(1 + (N − df + ½) / (df + ½)) for document frequency `df` of N documents (Lucene); never negative."""
    df = np.asarray(df, dtype=np.float64)
    return np.log1p((documents - df + 0.5) / (df + 0.5)).astype(np.float32)


def _ids(packed: Ragged) -> Int[np.ndarray, " n"]:
    if packed.ids is None:
        raise ShapeError("exact matching needs vectors with ids, but some have none")
    return packed.ids


def check_dims(queries: int, documents: int) -> None:
    """Raise ShapeError unless vectors of queries and documents have equally many components."""
    if queries != documents:
        raise ShapeError(
            f"query vectors of {queries} dimensions, document vectors of {documents}; "
            "was the index built with another model?"
        )
