"""MaxSim over rows of small integers: unpack, multiply and take the maximum in one pass over the rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from counterpoint.index.compiled.dots import LANES, dots

__all__ = ["maxsim_bits", "products_of"]


# Unsigned numbers as indices: numba would look at each signed one whether it counts from the end.


@njit(nogil=True, inline="always")
def _raise(found, query, factor, tables, at, best, integer):
    """Raise the best similarities of sixteen rows of a query to those with one row."""
    _, sums, scales, _ = query
    (bases, centres), (place, document, first), (step, top) = tables, at, integer
    for i in range(LANES):
        lane = np.uint64(i)
        m = first + lane
        inner = np.float32(step * found[lane] - top * sums[m]) * factor
        value = (inner + bases[place, m] + centres[document, m]) * scales[m]
        best[m] = value if value > best[m] else best[m]


@njit(nogil=True, inline="always")
def _unpack(values, row, levels, unpacked, code):
    """Write the codes of a row, from 0 up, into `levels`, which are the bytes of `unpacked`."""
    bits, table = code
    if bits == 8:  # signed integers, made to begin at 0
        for i in range(values.shape[1]):
            levels[np.uint64(i)] = values[row, np.uint64(i)] ^ np.uint8(128)
    else:
        for i in range(values.shape[1]):
            unpacked[np.uint64(i)] = table[values[row, np.uint64(i)]]


@njit(nogil=True, cache=True)
def products_of(query, values, code):
    """Exact inner products of a query's integers with every row of a table, as float32.

    Arguments are those of `maxsim_bits`.

    Returns:
        (n, rows of whole tiles) float32.
    """
    tiles, sums, _, _ = query
    bits, table = code
    integer = (np.int32(1), np.int32(128)) if bits == 8 else (np.int32(2), np.int32(2**bits - 1))
    unpacked = np.zeros(tiles.shape[1] // LANES * bits // 8, table.dtype)
    levels, found = unpacked.view(np.uint8), np.zeros(LANES, np.int32)
    exact = np.zeros((len(values), len(sums)), np.float32)
    for at in range(len(values)):
        _unpack(values, np.uint64(at), levels, unpacked, code)
        for tile in range(len(tiles)):
            dots(tiles[tile], levels, found)
            for lane in range(LANES):
                m = tile * LANES + lane
                exact[at, m] = np.float32(integer[0] * found[lane] - integer[1] * sums[m])
    return exact


@njit(nogil=True, cache=True)
def maxsim_bits(query, bases, centres, values, rows, factors, places, offsets, code, floor):
    """`counterpoint.index.kernels.maxsim_by` of one query, for rows of integers.

    The same integers are added and the same floats multiplied in the same order as there, so scores are
    equal to the last bit.

    Args:
        query: (tiles (t, ...) int8, sums of each row's integers int32, scales of the rows float32, how many
            rows). Sums and scales are filled up to whole tiles.
        bases: (c, rows of whole tiles) float32, products with the means of words.
        centres: (k, rows of whole tiles) float32, products with the centre of each document.
        values: (n, bytes) uint8, all packed rows of the set.
        rows: (r,) which of them are scored, document by document.
        factors: (r,) float32.
        places: (r,) the row of `bases` of each.
        offsets: (k + 1,) where the rows of each document begin.
        code: (bits b of a component, for every byte the codes that it holds as one number). A code c stands
            for the odd integer 2c + 1 − 2^b; one of 8 bits for itself, signed.
        floor: raise a negative best similarity to 0.

    Returns:
        (k,) float32.
    """
    tiles, sums, scales, count = query
    bits, table = code
    integer = (np.int32(1), np.int32(128)) if bits == 8 else (np.int32(2), np.int32(2**bits - 1))
    unpacked = np.zeros(tiles.shape[1] // LANES * bits // 8, table.dtype)
    levels = unpacked.view(np.uint8)
    found, best = np.zeros(LANES, np.int32), np.zeros(len(scales), np.float32)
    scores = np.zeros(len(offsets) - 1, np.float32)
    for document in range(len(offsets) - 1):
        if offsets[document] == offsets[document + 1]:
            continue
        best[:] = -np.inf
        for at in range(offsets[document], offsets[document + 1]):
            _unpack(values, np.uint64(rows[at]), levels, unpacked, code)
            for tile in range(len(tiles)):
                dots(tiles[tile], levels, found)
                where = np.uint64(places[at]), np.uint64(document), np.uint64(tile * LANES)
                _raise(found, query, factors[at], (bases, centres), where, best, integer)
        total = np.float32(0)
        for m in range(count):
            value = best[m]
            if floor and value < 0:
                value = np.float32(0)
            total = value if m == 0 else total + value
        scores[document] = total + np.float32(0)  # no score is −0
    return scores
