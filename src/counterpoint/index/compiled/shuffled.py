"""Sums of a query's integers where rows have bits: look-ups for every four bits of 32 rows at once, by AVX2.

Sixteen bytes of 32 rows are turned around, so that a vector holds the same byte of all rows. One instruction
then finds their entries in a table of 16 bytes. Entries are not negative: the least sum of a table is taken
off, and added to the sum of a row again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    BYTE,
    INTS,
    LANES,
    instruction,
    loaded,
    number,
    place_of,
    prefetch,
    repeated,
    spread,
)
from counterpoint.index.compiled.nibble_sums import CHUNK, nibble_sums
from counterpoint.index.compiled.products import chosen

__all__ = ["ROWS", "by_shuffles", "small_tables_of"]

# Imported code: abf7f013. numba compiles anew when this file changes, but not when that does.

ROWS = 2 * CHUNK
SIXTEEN, BYTES = (ir.VectorType(BYTE, count) for count in (CHUNK, ROWS))
SHORTS = ir.VectorType(ir.IntType(16), CHUNK)
LINE, AHEAD = 64, 4096  # bytes
TURNS = 4  # 2^4 bytes are turned around


def _turned(builder: Any, rows: list[Any]) -> list[Any]:
    """The same byte of 32 rows in a vector; the first half of a vector is of the first sixteen."""
    found = [chosen(builder, rows[i], rows[i + CHUNK], range(ROWS)) for i in range(CHUNK)]
    sides = [
        [place + i for lane in (0, CHUNK) for i in range(side, side + 8) for place in (lane, ROWS + lane)]
        for side in (0, 8)
    ]
    for _ in range(TURNS):
        pairs = [(found[i], found[i + CHUNK // 2]) for i in range(CHUNK // 2)]
        found = [chosen(builder, *pair, side) for pair in pairs for side in sides]
    return found


def _looked_up(builder: Any, tables: Any, which: int, nibbles: Any) -> Any:
    kind = ir.FunctionType(BYTES, [BYTES] * 2)
    look_up = builder.module.declare_intrinsic("llvm.x86.avx2.pshuf.b", fnty=kind)
    table = loaded(builder, builder.gep(tables, [number(which)]))
    return builder.call(look_up, [chosen(builder, table, table, [*range(CHUNK)] * 2), nibbles])


def _added(builder: Any, tables: Any, columns: list[Any]) -> Any:
    """What the bytes of 32 rows add to their sums, as numbers of 16 bits in the order of the rows."""
    every = odd = number(0, SHORTS)  # bytes in pairs: the lower byte of a pair, and 256 times the other
    for place, column in enumerate(columns):
        low = builder.and_(column, number(15, BYTES))
        high = builder.lshr(column, number(4, BYTES))
        found = [_looked_up(builder, tables, 2 * place + half, each) for half, each in enumerate((low, high))]
        both = builder.bitcast(builder.add(*found), SHORTS)  # below 256, as `signs.TOP` says
        every = builder.add(every, both)
        odd = builder.add(odd, builder.lshr(both, number(8, SHORTS)))
    even = builder.sub(every, builder.shl(odd, number(8, SHORTS)))
    return chosen(builder, even, odd, [lane for i in range(CHUNK) for lane in (i, CHUNK + i)])


def _rows_of(size: int | None) -> Any:
    """An instruction for rows of `size` bytes; None for rows of any size."""

    @instruction
    def stored(typingctx: Any, signs: Any, first: Any, width: Any, query: Any, sums: Any, place: Any) -> Any:
        """Store the sums of 32 rows. `query` are its tables, and the least sum of a row."""

        def codegen(*code: Any) -> Any:
            context, builder, _, args = code
            width = args[2] if size is None else number(size)
            of_query, base = place_of(code, (3, 0), number(0), SIXTEEN), place_of(code, 0, args[1], BYTE)
            rows = [builder.gep(base, [builder.mul(width, number(row))]) for row in range(ROWS)]
            last, least = builder.sub(width, number(CHUNK)), builder.extract_value(args[3], 1)

            def step(here: Any, totals: list[Any]) -> list[Any]:
                at = builder.mul(here, number(CHUNK))
                at = builder.select(builder.icmp_unsigned("<", at, last), at, last)
                places = [builder.bitcast(builder.gep(row, [at]), SIXTEEN.as_pointer()) for row in rows]
                columns = _turned(builder, [loaded(builder, each) for each in places])
                tables = builder.gep(of_query, [builder.mul(here, number(2 * CHUNK))])
                more = _added(builder, tables, columns)
                halves = (chosen(builder, more, more, range(at, at + LANES)) for at in (0, LANES))
                both = zip(totals, halves, strict=True)
                return [builder.add(total, builder.zext(half, INTS)) for total, half in both]

            rounds = builder.udiv(builder.add(width, number(CHUNK - 1)), number(CHUNK))
            found = repeated(builder, rounds, [spread(builder, least, INTS)] * 2, step)
            out = place_of(code, 4, args[5], INTS)
            for half, total in enumerate(found):
                builder.store(total, builder.gep(out, [number(half)]), align=4)
            return context.get_dummy_value()

        return types.void(signs, first, width, query, sums, place), codegen

    return stored


_any, _16 = (_rows_of(size) for size in (None, CHUNK))


@njit(nogil=True, cache=True)
def small_tables_of(query, width):
    """The tables of a query of integers of at most 31, flat: by byte, by half of it; a row's least sum."""
    tables, least = nibble_sums(query, width).reshape((-1, 16)), 0
    for table in tables:  # numbers of 8 bits, which wrap: what is left is below 256
        lowest = table.min()
        table -= lowest
        least += lowest
    return tables.reshape(-1).view(np.uint8), np.int32(least)


@njit(nogil=True, cache=True)
def by_shuffles(query, signs, sums, start, count):
    """Find the sums of at least `ROWS` rows of at least `CHUNK` bytes; only for a processor with AVX2.

    `query` is `small_tables_of` it.
    """
    width, flat = np.uint64(signs.shape[1]), signs.reshape(-1)
    for at in range(np.uint64(0), np.uint64(count), np.uint64(ROWS)):
        place = min(at, np.uint64(count - ROWS))  # the last rows may overlap those before
        first = (np.uint64(start) + place) * width
        for more in range(np.uint64(0), np.uint64(ROWS) * width, np.uint64(LINE)):
            prefetch(flat, first + np.uint64(AHEAD) + more)
        if width == np.uint64(CHUNK):  # where each row begins is then known
            _16(flat, first, width, query, sums, place)
        else:
            _any(flat, first, width, query, sums, place)
