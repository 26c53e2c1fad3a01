"""BM25 of the packed postings of one term: unpacked, and divided by lengths, in one pass."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from counterpoint.index.compiled.machine import given

__all__ = ["saturated"]

# Imported code: f054495f. numba compiles anew when this file changes, but not when that does.

WIDTHS = np.array([0, 1, 2, 4, 8, 16, 32])  # those of `counterpoint.index.packing`
BYTES = given(types.uint8, 1)
DOCUMENTS = types.Tuple((given(types.float64, 1), given(types.boolean, 1)))
FOUND = types.Tuple((types.int64[::1], types.float64[::1]))


@njit(nogil=True, inline="always")
def _whole(packed, first, bytes_each):
    """A little-endian number of some whole bytes."""
    number = np.int64(0)
    for byte in range(bytes_each):
        number |= np.int64(packed[first + byte]) << (8 * byte)
    return number


@njit(nogil=True)
def _small(packed, first, bits, numbers):
    """Unpack numbers of so many bits, a loop for each width, so that none of them asks which it is."""
    mask = np.int64((1 << bits) - 1)
    if bits == 0:
        numbers[:] = 0
    elif bits < 8:
        for at in range(len(numbers)):
            place = at * bits
            numbers[at] = np.int64(packed[first + (place >> 3)]) >> (place & 7) & mask
    elif bits == 8:
        for at in range(len(numbers)):
            numbers[at] = packed[first + at]
    elif bits == 16:
        for at in range(len(numbers)):
            numbers[at] = _whole(packed, first + 2 * at, 2)
    else:
        for at in range(len(numbers)):
            numbers[at] = _whole(packed, first + 4 * at, 4)


@njit(nogil=True)
def _unpacked(packed, start, numbers):
    """Unpack the list at `start`; where it ends, or -1 if there is none."""
    if start >= len(packed) or packed[start] >= len(WIDTHS):
        return -1
    bits = WIDTHS[packed[start]]
    end = start + 1 + ((len(numbers) * bits + 7) >> 3)
    if end > len(packed):
        return -1
    _small(packed, start + 1, bits, numbers)
    if 0 < bits < 32:
        top = np.int64((1 << bits) - 1)
        for at in range(len(numbers)):
            if numbers[at] == top:
                if end + 4 > len(packed):
                    return -1
                numbers[at] = _whole(packed, end, 4)
                end += 4
    return end


@njit(types.int64(BYTES, types.int64, DOCUMENTS, FOUND), nogil=True, cache=True)
def saturated(packed, count, documents, found):
    """Unpack the postings of a term, and compute tf / (tf + norm) in each document that is not deleted.

    Args:
        packed: two packed lists and nothing else: the gaps between documents, and the frequencies less one.
        count: of the postings, at least one.
        documents: the norm of each, k1 (1 - b + b·l/avgl); and which are not deleted, empty for all.
        found: written to: the documents, and the saturated frequencies; `count` of each at least.

    Returns:
        How many were written; -1 if these bytes are not the postings of these documents.
    """
    norms, live = documents
    rows, shares = found
    less = np.empty(count, np.int64)
    middle = _unpacked(packed, 0, rows[:count])
    if middle < 0 or _unpacked(packed, middle, less) != len(packed):
        return -1
    row = np.int64(-1)
    for at in range(count):
        row += rows[at] + 1
        rows[at] = row
    if row >= len(norms):
        return -1
    if len(live) == 0:
        for at in range(count):
            frequency = np.float64(less[at] + 1)
            shares[at] = frequency / (norms[rows[at]] + frequency)
        return count
    kept = 0
    for at in range(count):
        row = rows[at]
        if live[row]:
            frequency = np.float64(less[at] + 1)
            rows[kept], shares[kept] = row, frequency / (norms[row] + frequency)
            kept += 1
    return kept
