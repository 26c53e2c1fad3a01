"""Exact matching over rows of 8-bit integers: only rows that stand for a word of the query are multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

__all__ = ["add_postings", "matched"]


def _given(kind: Any, dimensions: int) -> Any:
    return types.Array(kind, dimensions, "C", readonly=True)


LONG_1, FLOAT_1, BYTE_2 = _given(types.int64, 1), _given(types.float32, 1), _given(types.int8, 2)
QUERY = types.Tuple((BYTE_2, FLOAT_1))
STORED = types.Tuple((BYTE_2, _given(types.uint16, 1), FLOAT_1))


@njit(nogil=True, inline="always")
def _similarity(query, asked, stored, row):
    """The inner product of integers, times the factor of the stored row and then that of the query's."""
    integers, scales = query
    values, factors, halves = stored
    dim = values.shape[1]
    total = np.int32(1 if dim == 0 else 0)
    for i in range(dim):
        total += np.int32(values[row, i]) * np.int32(integers[asked, i])
    return np.float32(total) * halves[factors[row]] * scales[asked]


@njit(nogil=True, inline="always")
def _owner(offsets, after, row):
    """The last document that begins at a row or before it, where `after` does, in steps that double."""
    low, step, last = after, 1, len(offsets) - 1
    while low + step < last and offsets[low + step] <= row:
        low += step
        step *= 2
    high = min(low + step, last)
    while high - low > 1:
        middle = (low + high) // 2
        if offsets[middle] <= row:
            low = middle
        else:
            high = middle
    return low


def _adding(of_postings: Any) -> Any:
    lists = types.Tuple((_given(of_postings, 1), LONG_1, LONG_1))
    return types.void(types.float32[::1], QUERY, lists, STORED, LONG_1)


@njit([_adding(types.uint32), _adding(types.uint64)], nogil=True, cache=True)
def add_postings(scores, query, lists, stored, offsets):
    """Add max(0, best exact match) of every row of a query, in their order, to the scores of all documents.

    Args:
        scores: (n,) float32, changed.
        query: integers, (m, d) int8, and scales, (m,) float32.
        lists: postings, (p,) row numbers; the first of each row of the query; and the end of its last.
        stored: integers, (r, d) int8, or (r, 0) where each row is its factor alone; factors, (r,) float16 as
            uint16; `counterpoint.index.compiled.maxsim.HALVES`.
        offsets: (n + 1,), where each document's rows begin.
    """
    postings, firsts, ends = lists
    for asked in range(len(firsts)):
        owner, best = 0, np.float32(0)
        for at in range(firsts[asked], ends[asked]):
            row = np.int64(postings[at])
            if row >= offsets[owner + 1]:
                scores[owner] += best
                owner, best = _owner(offsets, owner + 1, row), np.float32(0)
            best = max(best, _similarity(query, asked, stored, row))
        if firsts[asked] < ends[asked]:
            scores[owner] += best


@njit(
    types.float32[::1](
        QUERY,
        STORED,
        types.Tuple((LONG_1, _given(types.uint32, 1))),
        types.UniTuple(LONG_1, 2),
        types.boolean,
    ),
    nogil=True,
    cache=True,
)
def matched(query, stored, ids, where, floor):
    """`counterpoint.index.kernels.maxsim_by` of one query with ids.

    Args:
        query: as for `add_postings`.
        stored: as for `add_postings`.
        ids: of the query's rows, (m,), and of the stored ones, (r,).
        where: the first row of each of k documents, and the end of its last.
        floor: raise a negative best similarity to 0.

    Returns:
        (k,) float32.
    """
    of_query, of_rows = ids
    firsts, ends = where
    count = len(of_query)
    scores, best, matches = np.zeros(len(firsts), np.float32), np.zeros(count, np.float32), np.zeros(count)
    for document in range(len(firsts)):
        if firsts[document] == ends[document]:
            continue
        best[:], matches[:] = -np.inf, 0
        for row in range(firsts[document], ends[document]):
            word = np.int64(of_rows[row])
            for asked in range(count):
                if of_query[asked] == word:
                    best[asked] = max(best[asked], _similarity(query, asked, stored, row))
                    matches[asked] += 1
        total = np.float32(0)
        for asked in range(count):
            value = best[asked]
            # A row of another word has similarity 0.
            if value < 0 and (floor or matches[asked] < ends[document] - firsts[document]):
                value = np.float32(0)
            total += value
        scores[document] = total + np.float32(0)  # no score is −0
    return scores
