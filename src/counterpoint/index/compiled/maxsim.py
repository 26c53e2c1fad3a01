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
    LONG,
    given,
    instruction,
    loaded,
    number,
    place_of,
    prefetch,
    spread,
)
from counterpoint.index.compiled.unpacked import unpack

__all__ = ["HALVES", "maxsim_bits", "products_of"]

HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""Every float16 as float32, by its bits; numba does not support float16."""
HALVES.setflags(write=False)

FLOAT = FLOATS.element
AHEAD = 3 * ROWS  # rows that are prefetched
LINE = 64  # bytes of a cache line
ROOM = 64  # bytes after the last row that unpacking may write to


@instruction
def _raise(typingctx: Any, found: Any, rows: Any, of_rows: Any, query: Any, tables: Any, where: Any) -> Any:
    """Raise the best similarities of sixteen query rows to those with some stored rows.

    The best similarities stay in a register: through memory, each row would wait for the one before it.

    Args:
        typingctx: numba's own.
        found: (ROWS, LANES) int32, from `dots`.
        rows: the first of the stored rows in `found`, and where they end.
        of_rows: for each row in `found`, its factor, and where its word begins in the first of `tables`.
        query: for the query rows, what is subtracted from each product, scales, and best similarities.
        tables: products with the means of words and with the centres of documents.
        where: the first of the sixteen in the first two of `query`, in the second table, and in the best
            similarities; then the number of bits by which a product is shifted.
    """

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        lane, centre, best, shift = (builder.extract_value(args[5], i) for i in range(4))
        first, end = (builder.extract_value(args[1], i) for i in range(2))

        def read(which: int | tuple[int, int], place: Any, kind: Any = FLOATS) -> Any:
            return loaded(
                builder, builder.bitcast(place_of(code, which, place, kind.element), kind.as_pointer())
            )

        taken, scales, centres = read((3, 0), lane, INTS), read((3, 1), lane), read((4, 1), centre)
        best_at = builder.bitcast(place_of(code, (3, 2), best, FLOAT), FLOATS.as_pointer())
        shift, before = spread(builder, shift, INTS), loaded(builder, best_at)
        start, loop, done = builder.block, *(builder.append_basic_block(name) for name in ("loop", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        row, highest = builder.phi(LONG), builder.phi(FLOATS)
        product = loaded(builder, builder.gep(place_of(code, 0, number(0), INTS), [row]))
        value = builder.sitofp(builder.sub(builder.shl(product, shift), taken), FLOATS)
        factor = loaded(builder, place_of(code, (2, 0), row, FLOAT))
        base = builder.add(loaded(builder, place_of(code, (2, 1), row, LONG)), lane)
        value = builder.fadd(builder.fmul(value, spread(builder, factor, FLOATS)), read((4, 0), base))
        value = builder.fmul(builder.fadd(value, centres), scales)
        after = builder.select(builder.fcmp_ordered(">", value, highest), value, highest)
        following = builder.add(row, number(1))
        for phi, old, new in ((row, first, following), (highest, before, after)):
            phi.add_incoming(old, start)
            phi.add_incoming(new, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, end), loop, done)
        builder.position_at_end(done)
        builder.store(after, best_at).align = 1
        return context.get_dummy_value()

    return types.void(found, rows, of_rows, query, tables, where), codegen


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
    of_row, bases = np.zeros(ROWS, np.float32), np.zeros(ROWS, np.uint64)
    of_rows = of_row, bases
    for at in range(0, len(values), ROWS):
        some = min(ROWS, len(values) - at)
        for row in range(some):
            unpack(values, np.uint64(at + row), bits, levels, np.uint64(row) * width)
        for row in range(some):
            here = np.uint64(at + row)
            of_row[np.uint64(row)] = halves[factors[here]]
        for tile in range(len(tiles)):
            dots(tiles[tile], levels, width, found)
            lane = np.uint64(tile * LANES)
            for row in range(some):
                rows, best = (np.uint64(row), np.uint64(row + 1)), np.uint64(at + row) * lanes + lane
                _raise(found, rows, of_rows, query_rows, tables, (lane, lane, best, shift))
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
    of_words, last = tables[0].reshape(-1), len(factors) - 1
    query_rows, both = (taken, scales, best), (of_words, tables[1].reshape(-1))
    of_row, bases = np.zeros(ROWS, np.float32), np.zeros(ROWS, np.uint64)
    of_rows = of_row, bases
    codes, size = values.reshape(-1), values.shape[1]
    for document in range(len(firsts)):
        if firsts[document] == ends[document]:
            continue
        best[:] = -np.inf
        centre = np.uint64(document) * lanes
        for at in range(firsts[document], ends[document], ROWS):
            some = min(ROWS, ends[document] - at)
            soon = at + AHEAD  # documents lie far apart, so the processor cannot prefetch them itself
            if soon >= ends[document] and document + 1 < len(firsts):
                soon = firsts[document + 1] + AHEAD - (ends[document] - at + ROWS - 1) // ROWS * ROWS
            if soon < len(factors):
                prefetch(factors, np.uint64(soon))
            for place in range(soon * size, min((soon + ROWS) * size, len(codes)), LINE):
                prefetch(codes, np.uint64(place))
            for row in range(some):
                unpack(values, np.uint64(at + row), bits, levels, np.uint64(row) * width)
            for row in range(some):  # apart from unpacking, so that the compiler specialises that for `bits`
                here = np.uint64(at + row)
                of_row[np.uint64(row)] = halves[factors[here]]
                bases[np.uint64(row)] = np.uint64(places[_word(words, here)]) * lanes
                near = np.uint64(places[_word(words, np.uint64(min(at + row + ROWS, last)))]) * lanes
                for tile in range(len(tiles)):  # the table of words is larger than the nearest caches
                    prefetch(of_words, near + np.uint64(tile * LANES))
            rows = np.uint64(0), np.uint64(some)
            for tile in range(len(tiles)):
                dots(tiles[tile], levels, width, found)
                lane = np.uint64(tile * LANES)
                _raise(found, rows, of_rows, query_rows, both, (lane, centre + lane, lane, shift))
        total = np.float32(0)
        for m in range(count):
            value = best[m]
            if floor and value < 0:
                value = np.float32(0)
            total = value if m == 0 else total + value
        scores[document] = total + np.float32(0)  # no score is −0
    return scores
