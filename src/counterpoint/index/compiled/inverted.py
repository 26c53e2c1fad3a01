"""Exact matching over rows of 8-bit integers. Only rows of the query's own words are multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import BYTE, WORD, given, instruction, loaded, place_of, prefetch
from counterpoint.index.kernels import BUCKET

__all__ = ["add_postings", "add_sorted", "matched"]

BLOCK = 1024  # postings processed at a time, in loops short enough for out-of-order execution
AHEAD = 32  # postings whose rows are prefetched
EIGHT = 8  # components multiplied at once
BYTES, WORDS = (ir.VectorType(kind, EIGHT) for kind in (BYTE, WORD))

LONG_1, FLOAT_1, BYTE_2 = given(types.int64, 1), given(types.float32, 1), given(types.int8, 2)
QUERY = types.Tuple((BYTE_2, FLOAT_1))
STORED = types.Tuple((BYTE_2, given(types.uint16, 1), FLOAT_1))


@njit(nogil=True, inline="always")
def _product(integers, asked, values, row):
    """The inner product of two rows of integers; 1 if they have no components."""
    dim = np.uint64(values.shape[1])
    total = np.int32(1 if dim == 0 else 0)
    for i in range(dim):
        total += np.int32(values[row, i]) * np.int32(integers[asked, i])
    return np.float32(total)


@njit(nogil=True, cache=True)
def _owners(rows, count, offsets, near, owners):
    one = np.uint64(1)
    for at in range(np.uint64(count)):
        row = rows[at]
        bucket = row // np.uint64(BUCKET)
        low = np.uint64(near[bucket])
        # It is mostly one of three documents, which are found without a branch.
        low += np.uint64(offsets[low + one] <= row)
        low += np.uint64(offsets[low + one] <= row)
        if offsets[low + one] <= row:
            high = np.uint64(near[bucket + one]) + one
            while high - low > one:
                middle = (low + high) // np.uint64(2)
                if offsets[middle] <= row:
                    low = middle
                else:
                    high = middle
        owners[at] = low


@njit(nogil=True, cache=True)
def _similarities(rows, count, query, stored, found):
    """Similarities of one query row (integers and a scale) with some stored rows."""
    (integers, scale), (values, factors, halves) = query, stored
    dim = np.uint64(values.shape[1])
    for at in range(np.uint64(count)):
        # Rows of a word lie far apart, so the processor cannot prefetch them itself.
        soon = rows[at + np.uint64(AHEAD)]
        prefetch(values, soon * dim)
        prefetch(factors, soon)
        row = rows[at]
        total = np.int32(1 if dim == 0 else 0)
        for i in range(dim):
            total += np.int32(values[row, i]) * np.int32(integers[i])
        found[at] = np.float32(total) * halves[factors[row]] * scale


@njit(nogil=True, cache=True)
def _add_best(scores, owners, count, similarities, last, best):
    """Add the best similarity of every document but the last, which may have more rows.

    Returns:
        The last document, and its best similarity so far.
    """
    for at in range(np.uint64(count)):
        if owners[at] != last:
            scores[last] += best
            last, best = owners[at], np.float32(0)
        best = max(best, similarities[at])
    return last, best


def _adding(of_postings: Any) -> Any:
    lists = types.Tuple((given(of_postings, 1), LONG_1, LONG_1))
    documents = types.Tuple((given(types.uint64, 1), given(types.uint32, 1)))
    return types.void(types.float32[::1], QUERY, lists, STORED, documents)


@njit([_adding(types.uint32), _adding(types.uint64)], nogil=True, cache=True)
def add_postings(scores, query, lists, stored, documents):
    """Add max(0, best exact match) of every query row, in order, to the scores of all documents.

    Args:
        scores: (n,) float32, changed in place.
        query: integers, (m, d) int8, and scales, (m,) float32.
        lists: postings, (p,) row numbers; for each query row, where its postings begin and where they end.
        stored: integers, (r, d) int8, or (r, 0) if each row is only its factor; factors, (r,) float16 as
            uint16; `counterpoint.index.compiled.maxsim.HALVES`.
        documents: where the rows of each begin, (n + 1,); and `counterpoint.index.kernels.documents_near`.
    """
    (postings, firsts, ends), (offsets, near) = lists, documents
    integers, scales = query
    rows, owners = np.zeros(BLOCK + AHEAD, np.uint64), np.zeros(BLOCK, np.uint64)
    found = np.zeros(BLOCK, np.float32)
    for asked in range(len(firsts)):
        last, best = np.uint64(0), np.float32(0)
        for first in range(firsts[asked], ends[asked], BLOCK):
            count = min(BLOCK, ends[asked] - first)
            for at in range(min(BLOCK + AHEAD, ends[asked] - first)):
                rows[at] = postings[first + at]
            _owners(rows, count, offsets, near, owners)
            _similarities(rows, count, (integers[asked], scales[asked]), stored, found)
            last, best = _add_best(scores, owners, count, found, last, best)
        if firsts[asked] < ends[asked]:
            scores[last] += best


@instruction
def _eight(typingctx: Any, values: Any, first: Any, query: Any, of_query: Any) -> Any:
    """The inner product of eight components."""

    def codegen(*code: Any) -> Any:
        _, builder, _, args = code
        rows, queries = (place_of(code, which, args[which + 1], BYTES) for which in (0, 2))
        wide = (builder.sext(loaded(builder, each), WORDS) for each in (rows, queries))
        kind = ir.FunctionType(WORD, [WORDS])
        total = builder.module.declare_intrinsic(f"llvm.vector.reduce.add.v{EIGHT}i32", fnty=kind)
        return builder.call(total, [builder.mul(*wide)])

    return types.int32(values, first, query, of_query), codegen


@njit(nogil=True, cache=True)
def _in_order(first, count, query, stored, found):
    """Similarities of one query row with stored rows that follow each other."""
    (integers, scale), (values, factors, halves) = query, stored
    dim, flat = np.uint64(values.shape[1]), values.reshape(-1)
    whole = dim - dim % np.uint64(EIGHT)
    for at in range(np.uint64(count)):
        row = np.uint64(first) + at
        total = np.int32(1 if dim == 0 else 0)
        for i in range(np.uint64(0), whole, np.uint64(EIGHT)):
            total += _eight(flat, row * dim + i, integers, i)
        for i in range(whole, dim):
            total += np.int32(values[row, i]) * np.int32(integers[i])
        found[at] = np.float32(total) * halves[factors[row]] * scale


@njit(
    types.void(types.float32[::1], QUERY, types.UniTuple(LONG_1, 2), STORED, given(types.uint32, 1)),
    nogil=True,
    cache=True,
)
def add_sorted(scores, query, lists, stored, documents):
    """`add_postings` for rows in the order of the postings.

    Args:
        scores: (n,) float32, changed in place.
        query: as for `add_postings`.
        lists: for each query row, where the rows of its word begin and where they end.
        stored: as for `add_postings`.
        documents: of each row, (r,).
    """
    (firsts, ends), (integers, scales) = lists, query
    owners, found = np.zeros(BLOCK, np.uint64), np.zeros(BLOCK, np.float32)
    for asked in range(len(firsts)):
        last, best = np.uint64(0), np.float32(0)
        for first in range(firsts[asked], ends[asked], BLOCK):
            count = min(BLOCK, ends[asked] - first)
            for at in range(np.uint64(count)):
                owners[at] = documents[np.uint64(first) + at]
            _in_order(first, count, (integers[asked], scales[asked]), stored, found)
            last, best = _add_best(scores, owners, count, found, last, best)
        if firsts[asked] < ends[asked]:
            scores[last] += best


@njit(
    types.float32[::1](
        QUERY, STORED, types.Tuple((LONG_1, given(types.uint32, 1))), types.UniTuple(LONG_1, 2), types.boolean
    ),
    nogil=True,
    cache=True,
)
def matched(query, stored, ids, where, floor):
    """`counterpoint.index.kernels.maxsim_by` for one query with ids.

    Args:
        query: as for `add_postings`.
        stored: as for `add_postings`.
        ids: of the query's rows, (m,), and of the stored ones, (r,).
        where: for each of k documents, where its rows begin and where they end.
        floor: raise a negative best similarity to 0.

    Returns:
        (k,) float32.
    """
    (integers, scales), (values, factors, halves) = query, stored
    (of_query, of_rows), (firsts, ends) = ids, where
    count = len(of_query)
    scores, best, matches = np.zeros(len(firsts), np.float32), np.zeros(count, np.float32), np.zeros(count)
    for document in range(len(firsts)):
        if firsts[document] == ends[document]:
            continue
        best[:], matches[:] = -np.inf, 0
        for row in range(np.uint64(firsts[document]), np.uint64(ends[document])):
            word = np.int64(of_rows[row])
            for asked in range(count):
                if of_query[asked] == word:
                    value = _product(integers, asked, values, row) * halves[factors[row]] * scales[asked]
                    best[asked] = max(best[asked], value)
                    matches[asked] += 1
        total = np.float32(0)
        for asked in range(count):
            value = best[asked]
            # A row with another id has similarity 0.
            if value < 0 and (floor or matches[asked] < ends[document] - firsts[document]):
                value = np.float32(0)
            total += value
        scores[document] = total + np.float32(0)  # no score is −0
    return scores
