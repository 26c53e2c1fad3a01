"""For rows of bits and a query of several rows: the sums of the query's integers where the bits are set.

A table holds the sums of five components of a query row for all 32 values of their bits. One instruction of
AVX-512 looks up the entries of 32 rows, which have to lie side by side. With many components and query rows
this takes less time than multiplying bits as bytes; docs/speed.md has figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    INTS,
    LANES,
    LONG,
    WORD,
    instruction,
    loaded,
    looping,
    number,
    place_of,
    repeated,
)
from counterpoint.index.compiled.transposed import by_lanes, by_words

__all__ = ["BATCH", "CHUNK", "aligned", "buffers_of", "find_sums", "tables_of"]

# Imported code: 07108c1d. numba compiles anew when this file changes, but not when that does.

CHUNK = 16  # bytes of a row
SHORTS = 8  # of two bytes in a chunk
AT_ONCE = 5  # bits that are looked up
ENTRIES = 2**AT_ONCE
LOOK_UPS = 26  # for the bits of a chunk: three for each two bytes, two for the bits that these leave
SIDE = 32  # rows looked up at once
BATCH = 2 * SIDE
TOGETHER = 4  # query rows at once
LINE = 64  # bytes of a cache line
HELD = 2  # chunks whose sums fit 16 bits: 256 times 127 is less than 2^15
HALVES = ir.VectorType(ir.IntType(16), SIDE)
QUARTER = ir.VectorType(WORD, CHUNK // 4)


@instruction
def _places_of(
    typingctx: Any, values: Any, rows: Any, first: Any, width: Any, start: Any, places: Any
) -> Any:
    """Store the places in tables of a chunk of 32 rows; the look-up takes the lowest five bits of each."""

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        out, low = place_of(code, 5, number(0), HALVES), number(0xFFFF, INTS)
        sides = []
        for side in range(2):
            quarters = []
            for row in range(LANES * side, LANES * (side + 1)):
                which = loaded(builder, place_of(code, 1, builder.add(args[2], number(row)), LONG))
                at = builder.add(builder.mul(which, args[3]), args[4])
                quarters.append(loaded(builder, place_of(code, 0, at, QUARTER)))
            sides.append(by_words(builder, quarters))
        half, shorts = number(16, INTS), []
        for one, other in zip(*sides, strict=True):  # in turn the rows of one side and of the other
            shorts.append(builder.or_(builder.and_(one, low), builder.shl(other, half)))
            shorts.append(builder.or_(builder.lshr(one, half), builder.and_(other, number(0xFFFF0000, INTS))))
        shorts = [builder.bitcast(each, HALVES) for each in shorts]
        found = [
            each if not bits else builder.lshr(each, number(bits, HALVES))
            for each in shorts
            for bits in range(0, 15, AT_ONCE)
        ]
        last = [builder.lshr(each, number(15, HALVES)) for each in shorts]
        for some in (last[:AT_ONCE], last[AT_ONCE:]):
            joined = some[0]
            for place, bit in enumerate(some[1:], start=1):
                joined = builder.or_(joined, builder.shl(bit, number(place, HALVES)))
            found.append(joined)
        for place, each in enumerate(found):
            builder.store(each, builder.gep(out, [number(place)])).align = LINE
        return context.get_dummy_value()

    return types.void(values, rows, first, width, start, places), codegen


@instruction
def _add_sums(
    typingctx: Any, tables: Any, table: Any, places: Any, place: Any, rounds: Any, sums: Any
) -> Any:
    """Add, for four query rows and 64 rows, what is found in `rounds` tables of each to (4, 64) sums."""

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        tables, out = place_of(code, 0, args[1], HALVES), place_of(code, 5, number(0), INTS)
        sides = [place_of(code, 2, builder.extract_value(args[3], side), HALVES) for side in range(2)]
        kind = ir.FunctionType(HALVES, [HALVES] * 2)
        look_up = builder.module.declare_intrinsic("llvm.x86.avx512.permvar.hi.512", fnty=kind)

        def step(here: Any, before: list[Any]) -> list[Any]:
            places, after = [loaded(builder, builder.gep(side, [here])) for side in sides], []
            for row in range(TOGETHER):
                at = builder.add(builder.mul(here, number(TOGETHER)), number(row))
                of_query = loaded(builder, builder.gep(tables, [at]))
                for place in places:
                    found = builder.call(look_up, [of_query, place])
                    after.append(builder.add(before[len(after)], found))
            return after

        after = repeated(builder, args[4], [number(0, HALVES)] * 2 * TOGETHER, step)
        half = number(16, INTS)
        for which, total in enumerate(after):
            both = builder.bitcast(total, INTS)
            wide = builder.ashr(builder.shl(both, half), half), builder.ashr(both, half)
            for i, each in enumerate(wide):
                to = builder.gep(out, [number(2 * which + i)])
                builder.store(builder.add(loaded(builder, to), each), to).align = LINE
        return context.get_dummy_value()

    return types.void(tables, table, places, place, rounds, sums), codegen


@instruction
def _turned(typingctx: Any, sums: Any, first: Any, turned: Any, to: Any) -> Any:
    """Turn sixteen sums of each of sixteen query rows around: for each row, those with all query rows."""

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        source = place_of(code, 0, args[1], INTS)
        rows = [loaded(builder, builder.gep(source, [number(BATCH // LANES * i)])) for i in range(LANES)]
        out = place_of(code, 2, args[3], INTS)
        for lane, found in enumerate(by_lanes(builder, rows)):
            builder.store(found, builder.gep(out, [number(lane)])).align = LINE
        return context.get_dummy_value()

    return types.void(sums, first, turned, to), codegen


@njit(nogil=True, cache=True)
def _component(tiles, row, component):
    """An integer of a query that is in tiles, see `counterpoint.index.compiled.dots.tiles_of`."""
    at = component // 4 * 4 * LANES + row % LANES * 4 + component % 4
    return np.int16(tiles[row // LANES, at]) if at < tiles.shape[1] else np.int16(0)


@njit(nogil=True, cache=True)
def aligned(size):
    """Zeros that begin with a cache line."""
    room = np.zeros(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size]


@njit(nogil=True, cache=True)
def _bit_of(look_up, bit):
    """The bit of a chunk that a look-up has at some place; -1 if it has fewer."""
    if look_up < 3 * SHORTS:
        return look_up // 3 * 16 + look_up % 3 * AT_ONCE + bit
    short = (look_up - 3 * SHORTS) * AT_ONCE + bit
    return short * 16 + 15 if short < SHORTS else -1


@njit(nogil=True, cache=True)
def tables_of(tiles, count, width):
    """The tables of a query, flat: by four query rows, look-up, query row and value of the bits.

    The last chunk of a row may overlap the one before. What they share counts in the one before.
    """
    chunks, groups = -(-width // CHUNK), -(-count // TOGETHER)
    flat = aligned(2 * groups * chunks * LOOK_UPS * TOGETHER * ENTRIES).view(np.int16)
    found = flat.reshape(groups, chunks * LOOK_UPS, TOGETHER, ENTRIES)
    for chunk in range(chunks):
        start = min(CHUNK * chunk, width - CHUNK)
        shared = 8 * (CHUNK * chunk - start)
        for look_up in range(LOOK_UPS):
            for bit in range(AT_ONCE):
                place, half = _bit_of(look_up, bit), 1 << bit
                for row in range(count):
                    value = np.int16(0)
                    if place >= shared:
                        value = _component(tiles, row, 8 * start + place)
                    table = found[row // TOGETHER, chunk * LOOK_UPS + look_up, row % TOGETHER]
                    for entry in range(half):
                        table[half + entry] = table[entry] + value
    return flat


@njit(nogil=True, cache=True)
def buffers_of(lanes, width):
    """What `find_sums` writes to, for `lanes` query rows in whole tiles and rows of `width` bytes.

    Returns:
        The places of 64 rows in tables, and their sums twice: by query row and row, then, for each tile, by
        row and query row.
    """
    places = aligned(2 * 2 * -(-width // CHUNK) * LOOK_UPS * SIDE).view(np.int16)
    return places, aligned(4 * lanes * BATCH).view(np.int32), aligned(4 * lanes * BATCH).view(np.int32)


@looping
def find_sums(query, values, rows, buffers):
    """Find the sums of all query rows with 64 rows.

    Args:
        query: `tables_of` a query, how many rows it has, and the bytes of a stored row.
        values: all stored rows, flat.
        rows: numbers of 64 of them.
        buffers: from `buffers_of`.
    """
    (tables, count, width), (places, sums, turned) = query, buffers
    chunks = -(-width // CHUNK)
    each = chunks * LOOK_UPS  # places of 32 rows
    for side in range(2):
        for chunk in range(chunks):
            to = places[(side * each + chunk * LOOK_UPS) * SIDE :]
            start = min(CHUNK * chunk, width - CHUNK)
            _places_of(values, rows, np.uint64(side * SIDE), np.uint64(width), np.uint64(start), to)
    sums[:] = 0
    for group in range(-(-count // TOGETHER)):
        out = sums[group * TOGETHER * BATCH :]
        for chunk in range(0, chunks, HELD):
            rounds, first = min(HELD, chunks - chunk) * LOOK_UPS, chunk * LOOK_UPS
            table = np.uint64((group * each + first) * TOGETHER * ENTRIES)
            where = np.uint64(first * SIDE), np.uint64((each + first) * SIDE)
            _add_sums(tables, table, places, where, np.uint64(rounds), out)
    for lane in range(0, len(sums) // BATCH, LANES):
        for first in range(0, BATCH, LANES):
            _turned(sums, np.uint64(lane * BATCH + first), turned, np.uint64(lane * BATCH + first * LANES))
