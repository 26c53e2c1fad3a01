"""Where rows have bits, the sum of a query's integers: a look-up for every four bits of sixteen rows at once.

Four bytes of a row share a table of 64 entries, of which one instruction of AVX-512 VBMI finds 64. So a sum
takes two thirds of the time of multiplying the bits, `counterpoint.index.compiled.sketched`.
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
from counterpoint.index.compiled.products import by_vnni
from counterpoint.index.compiled.transposed import by_words

__all__ = ["CHUNK", "by_nibbles", "tables_of"]

# Imported code: a7447219. numba compiles anew when this file changes, but not when that does.

CHUNK = 16  # bytes of a row
EACH = 4  # bytes that share a table
ENTRIES = 16 * EACH
BYTES, QUARTER = ir.VectorType(BYTE, ENTRIES), ir.VectorType(WORD, CHUNK // EACH)


def _looked_up(builder: Any, tables: Any, which: int, places: Any) -> Any:
    """The entries of a table at 64 places."""
    kind = ir.FunctionType(BYTES, [BYTES] * 2)
    look_up = builder.module.declare_intrinsic("llvm.x86.avx512.permvar.qi.512", fnty=kind)
    table = loaded(builder, builder.gep(tables, [number(which)]))
    return builder.bitcast(builder.call(look_up, [table, places]), INTS)


@instruction
def _sixteen(typingctx: Any, signs: Any, first: Any, width: Any, tables: Any, sums: Any, place: Any) -> Any:
    """Store the sums of sixteen rows."""

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        of_query, rows = place_of(code, 3, number(0), BYTES), [place_of(code, 0, args[1], BYTE)]
        while len(rows) < LANES:
            rows.append(builder.gep(rows[-1], [args[2]]))
        last, ones = builder.sub(args[2], number(CHUNK)), builder.bitcast(number(1, BYTES), INTS)
        of_byte = ir.Constant(BYTES, [16 * (i % EACH) for i in range(ENTRIES)])

        def step(here: Any, before: list[Any]) -> list[Any]:
            totals, at = list(before), builder.mul(here, number(CHUNK))
            at = builder.select(builder.icmp_unsigned("<", at, last), at, last)
            places = [builder.bitcast(builder.gep(row, [at]), QUARTER.as_pointer()) for row in rows]
            tables = builder.gep(of_query, [builder.mul(here, number(CHUNK))])
            for word, low in enumerate(by_words(builder, [loaded(builder, each) for each in places])):
                for half, bits in enumerate((low, builder.lshr(low, number(4, INTS)))):
                    nibbles = builder.and_(builder.bitcast(bits, BYTES), number(15, BYTES))
                    entries, table = builder.or_(nibbles, of_byte), 4 * word + 2 * half
                    lows, highs = (_looked_up(builder, tables, table + i, entries) for i in range(2))
                    # Two sums of each, since an instruction waits for the one before.
                    totals[half] = by_vnni(builder, totals[half], lows, ones)
                    totals[2 + half] = by_vnni(builder, totals[2 + half], ones, highs)
            return totals

        rounds = builder.udiv(builder.add(args[2], number(CHUNK - 1)), number(CHUNK))
        found = repeated(builder, rounds, [number(0, INTS)] * 4, step)
        low, high = (builder.add(*found[i : i + 2]) for i in (0, 2))
        total = builder.add(low, builder.shl(high, number(8, INTS)))
        builder.store(total, place_of(code, 4, args[5], INTS), align=4)
        return context.get_dummy_value()

    return types.void(signs, first, width, tables, sums, place), codegen


@njit(nogil=True, cache=True)
def tables_of(query, width):
    """The tables of a query, flat: by word of four bytes, by half of its bytes, low and high bytes of sums.

    The last chunk of a row may overlap the one before. There its entries are 0.
    """
    found = np.zeros((-(-width // CHUNK), CHUNK // EACH, 2, 2, ENTRIES), np.uint8)
    for chunk in range(len(found)):
        start = min(CHUNK * chunk, width - CHUNK)
        for place in range(CHUNK * chunk - start, CHUNK):
            for half in range(2):
                first = 8 * (start + place) + 4 * half
                for nibble in range(16):
                    total = np.int16(0)
                    for bit in range(4):
                        if nibble >> bit & 1:
                            total += np.int16(query[first + bit])
                    entry = 16 * (place % EACH) + nibble
                    found[chunk, place // EACH, half, 0, entry] = total & 255
                    found[chunk, place // EACH, half, 1, entry] = total >> 8 & 255
    return found.reshape(-1)


@njit(nogil=True, cache=True)
def by_nibbles(tables, signs, sums, start, count):
    """Find the sums of at least sixteen rows of at least `CHUNK` bytes; only for a processor with VBMI."""
    width, flat = np.uint64(signs.shape[1]), signs.reshape(-1)
    for at in range(np.uint64(0), np.uint64(count), np.uint64(LANES)):
        place = min(at, np.uint64(count - LANES))  # the last sixteen may overlap those before
        _sixteen(flat, (np.uint64(start) + place) * width, width, tables, sums, place)
