"""MaxSim over rows of small integers: unpack, multiply and take the maximum in one pass over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

from counterpoint.index.compiled.dots import ROWS, dots
from counterpoint.index.compiled.machine import (
    FLOATS,
    INTS,
    LANES,
    given,
    instruction,
    loaded,
    number,
    place_of,
    spread,
)
from counterpoint.index.compiled.unpacked import unpack

__all__ = ["HALVES", "maxsim_bits", "products_of"]

HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""Every float16 as float32, by its bits; numba does not support float16."""
HALVES.setflags(write=False)

FLOAT = FLOATS.element
ROOM = 64  # bytes after the last row that unpacking may write to


@instruction
def _raise(typingctx: Any, found: Any, row: Any, factor: Any, query: Any, tables: Any, where: Any) -> Any:
    """Raise the best similarities of sixteen query rows to those with one stored row.

    Args:
        typingctx: numba's own.
        found: (ROWS, LANES) int32, from `dots`.
        row: number of the row in `found`.
        factor: of the stored row.
        query: for the query rows, what is subtracted from each product, scales, and best similarities.
        tables: products with the means of words and with the centres of documents.
        where: the first of the sixteen in each table, in the first two of `query`, and in the best
            similarities; then the number of bits by which a product is shifted.
    """

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        base, centre, lane, best, shift = (builder.extract_value(args[5], i) for i in range(5))
        taken = loaded(
            builder, builder.bitcast(place_of(code, (3, 0), lane, INTS.element), INTS.as_pointer())
        )
        best_at = builder.bitcast(place_of(code, (3, 2), best, FLOAT), FLOATS.as_pointer())
        scales, base, centre = (
            loaded(builder, builder.bitcast(place_of(code, which, place, FLOAT), FLOATS.as_pointer()))
            for which, place in (((3, 1), lane), ((4, 0), base), ((4, 1), centre))
        )
        product = loaded(builder, builder.gep(place_of(code, 0, number(0), INTS), [args[1]]))
        product = builder.sub(builder.shl(product, spread(builder, shift, INTS)), taken)
        value = builder.sitofp(product, FLOATS)
        value = builder.fmul(value, spread(builder, args[2], FLOATS))
        value = builder.fmul(builder.fadd(builder.fadd(value, base), centre), scales)
        best = loaded(builder, best_at)
        greater = builder.select(builder.fcmp_ordered(">", value, best), value, best)
        builder.store(greater, best_at).align = 1
        return context.get_dummy_value()

    return types.void(found, row, factor, query, tables, where), codegen


FLOAT_1, FLOAT_2 = given(types.float32, 1), given(types.float32, 2)
LONG_1, HALF_1, BYTE_2 = given(types.int64, 1), given(types.uint16, 1), given(types.uint8, 2)
QUERY = types.Tuple((given(types.int8, 2), given(types.int32, 1), FLOAT_1, types.int64))


@njit(nogil=True, inline="always")
def _integers(bits, sums):
    """How to convert products of codes to those of integers: the shift, and what is then subtracted."""
    if bits == 8:
        return np.int32(0), sums * np.int32(128)
    return np.int32(1), sums * np.int32(2**bits - 1)


@njit(nogil=True, inline="always")
def _word(words, row):
    """The word of a row; 0 if rows have none."""
    size = words.shape[1]
    if size == 0:
        return np.uint64(0)
    low = np.uint64(words[row, np.uint64(0)]) | np.uint64(words[row, np.uint64(1)]) << np.uint64(8)
    if size == 2:
        return low
    high = np.uint64(words[row, np.uint64(2)]) | np.uint64(words[row, np.uint64(3)]) << np.uint64(8)
    return low | high << np.uint64(16)


@njit(types.float32[:, ::1](QUERY, BYTE_2, HALF_1, types.int64, FLOAT_1), nogil=True, cache=True)
def products_of(query, values, factors, bits, halves):
    """Inner products of a query's integers with every row of a table.

    The arguments are those of `maxsim_bits`.

    Returns:
        (n, rows padded to whole tiles) float32.
    """
    tiles, sums, _, _ = query
    shift, taken = _integers(bits, sums)
    width, lanes = np.uint64(tiles.shape[1] // LANES), np.uint64(len(sums))
    levels, found = np.zeros(ROWS * width + np.uint64(ROOM), np.uint8), np.zeros((ROWS, LANES), np.int32)
    ones, nothing = np.ones(len(sums), np.float32), np.zeros(len(sums), np.float32)
    made = np.full((len(values), len(sums)), -np.inf, np.float32)
    query_rows, tables = (taken, ones, made.reshape(-1)), (nothing, nothing)  # numba counts references
    lanes = np.uint64(len(sums))
    for at in range(0, len(values), ROWS):
        some = min(ROWS, len(values) - at)
        for row in range(some):
            unpack(values, np.uint64(at + row), bits, levels, np.uint64(row) * width)
        for tile in range(len(tiles)):
            dots(tiles[tile], levels, width, found)
            lane = np.uint64(tile * LANES)
            for row in range(some):
                here = np.uint64(at + row)
                where = lane, lane, lane, here * lanes + lane, shift
                _raise(found, np.uint64(row), halves[factors[here]], query_rows, tables, where)
    return made


@njit(
    types.float32[::1](
        QUERY,
        types.UniTuple(FLOAT_2, 2),
        types.Tuple((BYTE_2, HALF_1, BYTE_2, types.int64)),
        types.UniTuple(LONG_1, 3),
        FLOAT_1,
        types.boolean,
    ),
    nogil=True,
    cache=True,
)
def maxsim_bits(query, tables, stored, where, halves, floor):
    """`counterpoint.index.kernels.maxsim_by` for one query and rows of integers.

    The same integers are added, and the same floats multiplied in the same order, so scores are
    bit-identical.

    Args:
        query: (tiles (t, ...) int8, sums of each row's integers int32, scales of the rows float32, number of
            rows). Sums and scales are padded to whole tiles.
        tables: products with the means of words, (c, rows padded to whole tiles) float32, and with the centre
            of each document, (k, the same).
        stored: of all n rows of the set: the packed codes, (n, bytes) uint8; the factors, float16 as (n,)
            uint16; the numbers of the words, uint8, each in 0, 2 or 4 bytes, the lowest first; and b, the
            bits per component. A code c of b bits means the integer 2c + 1 − 2^b. Codes of 8 bits are the
            signed integers themselves.
        where: for each word, its row of the first table; for each of k documents, where its rows begin and
            where they end.
        halves: `HALVES`.
        floor: raise a negative best similarity to 0.

    Returns:
        (k,) float32.
    """
    tiles, sums, scales, count = query
    values, factors, words, bits = stored
    places, firsts, ends = where
    shift, taken = _integers(bits, sums)
    width, lanes = np.uint64(tiles.shape[1] // LANES), np.uint64(len(sums))
    levels, found = np.zeros(ROWS * width + np.uint64(ROOM), np.uint8), np.zeros((ROWS, LANES), np.int32)
    best, scores = np.zeros(len(scales), np.float32), np.zeros(len(firsts), np.float32)
    query_rows, both = (taken, scales, best), (tables[0].reshape(-1), tables[1].reshape(-1))
    for document in range(len(firsts)):
        if firsts[document] == ends[document]:
            continue
        best[:] = -np.inf
        centre = np.uint64(document) * lanes
        for at in range(firsts[document], ends[document], ROWS):
            some = min(ROWS, ends[document] - at)
            for row in range(some):
                unpack(values, np.uint64(at + row), bits, levels, np.uint64(row) * width)
            for tile in range(len(tiles)):
                dots(tiles[tile], levels, width, found)
                lane = np.uint64(tile * LANES)
                for row in range(some):
                    here = np.uint64(at + row)
                    base = np.uint64(places[_word(words, here)]) * lanes + lane
                    where_ = base, centre + lane, lane, lane, shift
                    _raise(found, np.uint64(row), halves[factors[here]], query_rows, both, where_)
        total = np.float32(0)
        for m in range(count):
            value = best[m]
            if floor and value < 0:
                value = np.float32(0)
            total = value if m == 0 else total + value
        scores[document] = total + np.float32(0)  # no score is −0
    return scores
