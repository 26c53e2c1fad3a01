"""Where rows have bits, the sum of a query's integers: a look-up for every four bits of sixteen rows at once.

Four bytes of a row share a table of 64 entries, of which one instruction of AVX-512 VBMI finds 64. So a sum
takes half of the time of multiplying the bits, `counterpoint.index.compiled.sketched`.
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
    WORD,
    instruction,
    loaded,
    number,
    place_of,
    repeated,
)
from counterpoint.index.compiled.nibble_sums import CHUNK, nibble_sums
from counterpoint.index.compiled.products import by_vnni, chosen
from counterpoint.index.compiled.transposed import by_words, fours

__all__ = ["by_nibbles", "tables_of"]

# Imported code: 96d4f835. numba compiles anew when this file changes, but not when that does.

EACH = 4  # bytes that share a table
ENTRIES = 16 * EACH
BYTES, QUARTER = ir.VectorType(BYTE, ENTRIES), ir.VectorType(WORD, CHUNK // EACH)


def _looked_up(builder: Any, tables: Any, which: int, places: Any) -> Any:
    """The entries of a table at 64 places."""
    kind = ir.FunctionType(BYTES, [BYTES] * 2)
    look_up = builder.module.declare_intrinsic("llvm.x86.avx512.permvar.qi.512", fnty=kind)
    table = loaded(builder, builder.gep(tables, [number(which)]))
    return builder.bitcast(builder.call(look_up, [table, places]), INTS)


def _added(builder: Any, of_query: Any, words: list[Any], before: list[Any]) -> list[Any]:
    """Add to four sums, half of each for the lower bits of bytes, what `words` of sixteen rows have."""
    totals, ones = list(before), builder.bitcast(number(1, BYTES), INTS)
    of_byte = ir.Constant(BYTES, [16 * (i % EACH) for i in range(ENTRIES)])
    for word, low in enumerate(words):
        for half, bits in enumerate((low, builder.lshr(low, number(4, INTS)))):
            nibbles = builder.and_(builder.bitcast(bits, BYTES), number(15, BYTES))
            found = _looked_up(builder, of_query, 2 * word + half, builder.or_(nibbles, of_byte))
            # Four sums, since an instruction waits for the one before.
            which = 2 * (word % 2) + half
            totals[which] = by_vnni(builder, totals[which], ones, found)
    return totals


def _stored(code: tuple[Any, ...], totals: list[Any], lanes: Any = None) -> Any:
    """Store the sum of four sums; `lanes` are taken in this order."""
    context, builder, _, args = code
    total = builder.add(*(builder.add(*totals[i : i + 2]) for i in (0, 2)))
    if lanes is not None:
        total = chosen(builder, total, total, lanes)
    builder.store(total, place_of(code, 4, args[5], INTS), align=4)
    return context.get_dummy_value()


@instruction
def _sixteen_short(
    typingctx: Any, signs: Any, first: Any, width: Any, tables: Any, sums: Any, place: Any
) -> Any:
    """Store the sums of sixteen rows of `CHUNK` bytes, which four vectors hold as they lie in memory."""

    def codegen(*code: Any) -> Any:
        _, builder, _, args = code
        rows = place_of(code, 0, args[1], INTS)
        words = fours(builder, [loaded(builder, builder.gep(rows, [number(i)])) for i in range(4)])
        totals = _added(builder, place_of(code, 3, number(0), BYTES), words, [number(0, INTS)] * 4)
        return _stored(code, totals, [4 * (row % 4) + row // 4 for row in range(LANES)])

    return types.void(signs, first, width, tables, sums, place), codegen


@instruction
def _sixteen(typingctx: Any, signs: Any, first: Any, width: Any, tables: Any, sums: Any, place: Any) -> Any:
    """Store the sums of sixteen rows."""

    def codegen(*code: Any) -> Any:
        _, builder, _, args = code
        of_query, rows = place_of(code, 3, number(0), BYTES), [place_of(code, 0, args[1], BYTE)]
        while len(rows) < LANES:
            rows.append(builder.gep(rows[-1], [args[2]]))
        last = builder.sub(args[2], number(CHUNK))

        def step(here: Any, before: list[Any]) -> list[Any]:
            at = builder.mul(here, number(CHUNK))
            at = builder.select(builder.icmp_unsigned("<", at, last), at, last)
            places = [builder.bitcast(builder.gep(row, [at]), QUARTER.as_pointer()) for row in rows]
            tables = builder.gep(of_query, [builder.mul(here, number(CHUNK // 2))])
            return _added(
                builder, tables, by_words(builder, [loaded(builder, each) for each in places]), before
            )

        rounds = builder.udiv(builder.add(args[2], number(CHUNK - 1)), number(CHUNK))
        return _stored(code, repeated(builder, rounds, [number(0, INTS)] * 4, step))

    return types.void(signs, first, width, tables, sums, place), codegen


@njit(nogil=True, cache=True)
def tables_of(query, width):
    """The tables of a query of integers of at most 31, flat: by word of four bytes, by half of its bytes."""
    sums = nibble_sums(query, width)
    by_word = sums.reshape((len(sums), CHUNK // EACH, EACH, 2, 16)).transpose((0, 1, 3, 2, 4))
    return by_word.copy().reshape(-1)


@njit(nogil=True, cache=True)
def by_nibbles(tables, signs, sums, start, count):
    """Find the sums of at least sixteen rows of at least `CHUNK` bytes; only for a processor with VBMI."""
    width, flat = np.uint64(signs.shape[1]), signs.reshape(-1)
    for at in range(np.uint64(0), np.uint64(count), np.uint64(LANES)):
        place = min(at, np.uint64(count - LANES))  # the last sixteen may overlap those before
        if width == np.uint64(CHUNK):
            _sixteen_short(flat, (np.uint64(start) + place) * width, width, tables, sums, place)
        else:
            _sixteen(flat, (np.uint64(start) + place) * width, width, tables, sums, place)
