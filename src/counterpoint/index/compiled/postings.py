"""BM25 of one term's packed postings: unpacked, divided by lengths and weighted; and the sum of terms."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from counterpoint.index.compiled.machine import given

__all__ = ["add_scores", "scored"]

# Imported code: ca85fa7d. numba compiles anew when this file changes, but not when that does.

WIDTHS = np.array([0, 1, 2, 4, 8, 16, 32])  # those of `counterpoint.index.packing`
BYTES = given(types.uint8, 1)
DOCUMENTS = types.Tuple((given(types.float64, 1), given(types.boolean, 1)))
FOUND = types.Tuple((types.int32[::1], types.float32[::1]))
SUMS, SCORES = types.float32[::1], given(types.float32, 1)


@njit(nogil=True, inline="always")
def _whole(packed, first, bytes_each):
    """A little-endian number of some whole bytes."""
    number = np.uint32(0)
    for byte in range(np.uint64(bytes_each)):
        number |= np.uint32(packed[np.uint64(first) + byte]) << np.uint32(np.uint64(8) * byte)
    return number


@njit(nogil=True, inline="always")
def _parts(packed, first, bits, numbers):
    """Unpack numbers of 1, 2 or 4 bits; `bits` is known to the compiler."""
    each, first = np.uint64(8 // bits), np.uint64(first)
    mask, count = np.uint32((1 << bits) - 1), np.uint64(len(numbers))
    whole = count // each
    for byte in range(whole):
        value = np.uint32(packed[first + byte])
        for place in range(each):
            numbers[byte * each + place] = value >> np.uint32(place * np.uint64(bits)) & mask
    for at in range(whole * each, count):
        value = np.uint32(packed[first + whole])
        numbers[at] = value >> np.uint32((at - whole * each) * np.uint64(bits)) & mask


@njit(nogil=True)
def _small(packed, first, bits, numbers):
    """Unpack numbers of so many bits, a loop for each width, so that none of them asks which it is."""
    count = np.uint64(len(numbers))
    if bits == 0:
        numbers[:] = 0
    elif bits == 1:
        _parts(packed, first, 1, numbers)
    elif bits == 2:
        _parts(packed, first, 2, numbers)
    elif bits == 4:
        _parts(packed, first, 4, numbers)
    elif bits == 8:
        for at in range(count):
            numbers[at] = packed[np.uint64(first) + at]
    elif bits == 16:
        for at in range(count):
            numbers[at] = _whole(packed, np.uint64(first) + np.uint64(2) * at, 2)
    else:
        for at in range(count):
            numbers[at] = _whole(packed, np.uint64(first) + np.uint64(4) * at, 4)


@njit(nogil=True)
def _unpacked(packed, start, numbers):
    """Unpack the list at `start`; where it ends, or -1 if there is none."""
    if start >= len(packed) or packed[start] >= len(WIDTHS):
        return -1
    bits, count = WIDTHS[packed[start]], np.uint64(len(numbers))
    end = start + 1 + ((len(numbers) * bits + 7) >> 3)
    if end > len(packed):
        return -1
    _small(packed, start + 1, bits, numbers)
    if 0 < bits < 32:
        top, larger = np.uint32((1 << bits) - 1), 0
        for at in range(count):
            larger += numbers[at] == top
        if end + 4 * larger > len(packed):
            return -1
        for at in range(count if larger else np.uint64(0)):
            if numbers[at] == top:
                numbers[at] = _whole(packed, end, 4)
                end += 4
    return end


@njit(types.int64(BYTES, types.int64, DOCUMENTS, types.float64, FOUND), nogil=True, cache=True)
def scored(packed, count, documents, idf, found):
    """Unpack the postings of a term, and compute idf · tf / (tf + norm) in each document that is not deleted.

    Args:
        packed: two packed lists and nothing else: the gaps between documents, and the frequencies less one.
        count: of the postings, at least one.
        documents: the norm of each, k1 (1 - b + b·l/avgl); and which are not deleted, empty for all. Fewer
            than 2^31.
        idf: of the term.
        found: written to: the documents, and the scores; `count` of each at least.

    Returns:
        How many were written; -1 if these bytes are not the postings of these documents.
    """
    norms, live = documents
    rows, scores = found
    gaps, less, each = np.empty(count, np.uint32), np.empty(count, np.uint32), np.uint64(count)
    middle = _unpacked(packed, 0, gaps)
    if middle < 0 or _unpacked(packed, middle, less) != len(packed):
        return -1
    row = np.int64(-1)
    for at in range(each):
        row += np.int64(gaps[at]) + 1
        rows[at] = np.int32(row)
    if row >= len(norms):  # it is the largest, so all are rows
        return -1
    for at in range(each):
        frequency = np.float64(less[at]) + np.float64(1)
        scores[at] = np.float32(frequency / (norms[np.uint32(rows[at])] + frequency) * idf)
    if len(live) == 0:
        return count
    kept = np.uint64(0)
    for at in range(each):
        if live[np.uint32(rows[at])]:
            rows[kept], scores[kept] = rows[at], scores[at]
            kept += np.uint64(1)
    return kept


@njit(
    [types.void(SUMS, given(kind, 1), SCORES) for kind in (types.int32, types.int64)], nogil=True, cache=True
)
def add_scores(total, rows, scores):
    """Add the scores of some documents, none of them twice, to `total`, in place."""
    for at in range(len(rows)):
        total[rows[at]] += scores[at]
