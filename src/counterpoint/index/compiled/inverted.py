"""Exact matching over rows of 8-bit integers. Only rows of the query's own words are multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    BYTE,
    FLOATS,
    INTS,
    LANES,
    SHORTS,
    given,
    instruction,
    loaded,
    number,
    of_halves,
    place_of,
    prefetch,
    spread,
)
from counterpoint.index.compiled.products import in_pairs, multiplied
from counterpoint.index.kernels import BUCKET

__all__ = ["add_postings", "add_sorted", "matched"]

# Imported code: 0cd4c9c8. numba compiles anew when this file changes, but not when that does.

BLOCK = 1024  # postings processed at a time, in loops short enough for out-of-order execution
NEIGHBOURS = 2**16  # documents whose scores of all words are added before those of others, to stay in cache
AHEAD = 32  # postings whose rows are prefetched
WIDE = 4 * LANES  # components multiplied at once
FIT = (4, 8, 16, 32)  # numbers of components of which `LANES` rows are multiplied at once
BYTES = ir.VectorType(BYTE, WIDE)

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
            last, best = np.uint64(owners[at]), np.float32(0)
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


def _lanes_of(dim: int) -> Any:
    """An instruction for the similarities of a query row with sixteen rows of `dim` components."""

    @instruction
    def found(typingctx: Any, stored: Any, row: Any, asked: Any, numbers: Any, into: Any, at: Any) -> Any:
        """Store sixteen similarities.

        Args:
            typingctx: numba's own.
            stored: flat integers, and factors as uint16.
            row: the first row.
            asked: the query row, repeated in 64 bytes.
            numbers: 128 times the sum of the query row, and its scale.
            into: float32.
            at: where to store them.
        """

        def codegen(*code: Any) -> Any:
            context, builder, _, args = code
            values = place_of(code, (0, 0), builder.mul(args[1], number(dim)), BYTES)
            query = loaded(builder, place_of(code, 2, number(0), INTS))
            surplus, scale = (builder.extract_value(args[3], which) for which in range(2))
            sums = []
            for which in range(dim // 4):
                levels = loaded(builder, builder.gep(values, [number(which)]))
                levels = builder.bitcast(builder.xor(levels, number(128, BYTES)), INTS)
                sums.append(multiplied(builder, number(0, INTS), levels, query))
            while len(sums) > 1:
                sums = [in_pairs(builder, *sums[i : i + 2]) for i in range(0, len(sums), 2)]
            products = builder.sitofp(builder.sub(sums[0], spread(builder, surplus, INTS)), FLOATS)
            factors = of_halves(builder, loaded(builder, place_of(code, (0, 1), args[1], SHORTS)))
            scaled = builder.fmul(builder.fmul(products, factors), spread(builder, scale, FLOATS))
            builder.store(scaled, place_of(code, 4, args[5], FLOATS)).align = 4
            return context.get_dummy_value()

        return types.void(stored, row, asked, numbers, into, at), codegen

    return found


_4, _8, _16, _32 = (_lanes_of(dim) for dim in FIT)


@njit(nogil=True, cache=True)
def _in_lanes(first, count, query, stored, found):
    """`_in_order` for as many rows as fill the lanes; returns how many."""
    (integers, scale), (values, factors, _) = query, stored
    dim, rows = len(integers), np.uint64(count - count % LANES)
    asked, surplus = np.empty(WIDE, np.int8), np.int32(0)
    for i in range(WIDE):
        asked[i] = integers[i % dim]
    for i in range(dim):
        surplus += np.int32(128) * np.int32(integers[i])
    flat, start, numbers = (values.reshape(-1), factors), np.uint64(first), (np.int32(surplus), scale)
    for at in range(np.uint64(0), rows, np.uint64(LANES)):
        if dim == 4:
            _4(flat, start + at, asked, numbers, found, at)
        elif dim == 8:
            _8(flat, start + at, asked, numbers, found, at)
        elif dim == 16:
            _16(flat, start + at, asked, numbers, found, at)
        else:
            _32(flat, start + at, asked, numbers, found, at)
    return rows


@njit(nogil=True, cache=True)
def _in_order(first, count, query, stored, found):
    """Similarities of one query row with stored rows that follow each other."""
    (integers, scale), (values, factors, halves) = query, stored
    dim, done = np.uint64(len(integers)), np.uint64(0)
    if len(integers) in FIT:
        done = _in_lanes(first, count, query, stored, found)
    for at in range(done, np.uint64(count)):
        row = np.uint64(first) + at
        total = np.int32(1 if dim == 0 else 0)
        for i in range(dim):
            total += np.int32(values[row, i]) * np.int32(integers[i])
        found[at] = np.float32(total) * halves[factors[row]] * scale


@njit(nogil=True, inline="always")
def _first_from(documents, low, high, wanted):
    """The place of the first document from `wanted` on, between two places."""
    while low < high:
        middle = (low + high) // 2
        if documents[np.uint64(middle)] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


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
    found, reached = np.zeros(BLOCK, np.float32), firsts.copy()
    for before in range(0, len(scores), NEIGHBOURS):
        for asked in range(len(firsts)):
            start = reached[asked]
            end = _first_from(documents, start, ends[asked], before + NEIGHBOURS)
            last, best = np.uint64(0), np.float32(0)
            for first in range(start, end, BLOCK):
                count = min(BLOCK, end - first)
                _in_order(first, count, (integers[asked], scales[asked]), stored, found)
                last, best = _add_best(scores, documents[first : first + count], count, found, last, best)
            if start < end:
                scores[last] += best
            reached[asked] = end


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
