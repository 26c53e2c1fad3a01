"""Upper bounds of inner products of a query of small integers with rows of bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    AVX2_ALONE,
    BYTE,
    INTS,
    LANES,
    LONG,
    VBMI,
    given,
    instruction,
    loaded,
    number,
    place_of,
    repeated,
)
from counterpoint.index.compiled.nibble_sums import CHUNK
from counterpoint.index.compiled.nibbles import by_nibbles, tables_of
from counterpoint.index.compiled.products import added_up_four, multiplied
from counterpoint.index.compiled.shuffled import ROWS as SHUFFLED
from counterpoint.index.compiled.shuffled import by_shuffles, small_tables_of

__all__ = ["sketched_rows"]

# Imported code: 04716c65. numba compiles anew when this file changes, but not when that does.

WIDE = 64  # bits multiplied at once
ROWS = 4  # rows at a time, since adding up the lanes of four costs little more than of one
BLOCK = 1024  # rows whose sums are held at a time, a multiple of `ROWS`
TURNED = VBMI or AVX2_ALONE  # whether bits of several rows are looked up at once
MOST = LANES if VBMI else SHUFFLED  # rows looked up at once
EXPONENTS = np.float32(2.0**112)  # a float16 has its exponent from 15 on, a float32 from 127
BYTES = ir.VectorType(BYTE, WIDE)
FLAGS = ir.VectorType(ir.IntType(1), WIDE)


@instruction
def _four(typingctx: Any, signs: Any, first: Any, width: Any, query: Any, sums: Any, place: Any) -> Any:
    """Store, for four rows, the sum of a query's integers where the row has bits."""

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        asked, width = place_of(code, 3, number(0), INTS), args[2]
        rows = [
            place_of(code, 0, builder.add(args[1], builder.mul(width, number(row))), BYTE)
            for row in range(ROWS)
        ]
        last = builder.sub(width, number(8))

        def step(here: Any, totals: list[Any]) -> list[Any]:
            at = builder.mul(here, number(8))
            at = builder.select(builder.icmp_unsigned("<", at, last), at, last)
            of_query, added = loaded(builder, builder.gep(asked, [here])), []
            for row, total in zip(rows, totals, strict=True):
                word = loaded(builder, builder.bitcast(builder.gep(row, [at]), LONG.as_pointer()))
                levels = builder.zext(builder.bitcast(word, FLAGS), BYTES)
                added.append(multiplied(builder, total, builder.bitcast(levels, INTS), of_query))
            return added

        rounds = builder.udiv(builder.add(width, number(7)), number(8))
        found = added_up_four(builder, repeated(builder, rounds, [number(0, INTS)] * ROWS, step))
        where = place_of(code, 4, args[5], found.type)
        builder.store(found, where, align=4)
        return context.get_dummy_value()

    return types.void(signs, first, width, query, sums, place), codegen


@njit(nogil=True, cache=True)
def _by_vectors(query, signs, sums, start, count):
    """Find the sums of at least four rows of at least 8 bytes."""
    width, flat = np.uint64(signs.shape[1]), signs.reshape(-1)
    for at in range(np.uint64(0), np.uint64(count), np.uint64(ROWS)):
        # The last four may overlap those before.
        place = min(at, np.uint64(count - ROWS))
        _four(flat, (np.uint64(start) + place) * width, width, query, sums, place)


@njit(nogil=True, cache=True)
def _spaced(query, width):
    """The query's integers as `_by_vectors` multiplies them.

    The last eight bytes of a row overlap those before, which have been multiplied: the query has zeros there.
    """
    end, found = 8 * width, np.zeros(-(-width // 8) * WIDE, np.int8)
    whole = end - end % WIDE
    found[:whole] = query[:whole]
    found[len(found) - (end - whole) :] = query[whole:end]
    return found


@njit(nogil=True, cache=True)
def _byte_tables(query, width):
    """For every byte of a row, the sum for each of its values."""
    sums = np.zeros((width, 256), np.int16)
    for at in range(width):
        for byte in range(256):
            for place in range(8):
                if byte >> place & 1:
                    sums[at, byte] += np.int16(query[8 * at + place])
    return sums


@njit(nogil=True, cache=True)
def _by_tables(tables, signs, sums, start, count):
    width = np.uint64(len(tables))
    whole = width - width % np.uint64(2)
    for place in range(np.uint64(count)):
        row = np.uint64(start) + place
        one = other = np.int32(0)  # independent sums
        for at in range(np.uint64(0), whole, np.uint64(2)):
            following = at + np.uint64(1)
            one += np.int32(tables[at, signs[row, at]])
            other += np.int32(tables[following, signs[row, following]])
        if whole < width:
            one += np.int32(tables[whole, signs[row, whole]])
        sums[place] = one + other


QUERY: Any = types.Tuple((given(types.int8, 1), types.float32, types.float32))
SIGNS: Any = given(types.uint8, 2)


@njit(types.float32[::1](QUERY, SIGNS, given(types.uint16, 1)), nogil=True, cache=True)
def sketched_rows(query, signs, factors):
    """`counterpoint.index.signs.sketched`, compiled.

    Args:
        query: integers, (8 b,) int8, of at most `TOP`, zeros where rows have no bits; their scale; the error
            bound of a row with factor 1.
        signs: (n, b) uint8.
        factors: (n,) float16 as uint16; finite and not negative. Where the processor was told to flush
            subnormal numbers to zero, those below 2^-14 count as 0.

    Returns:
        (n,) float32.
    """
    (integers, scale, error), (count, width) = query, signs.shape
    found, sums, total = np.empty(count, np.float32), np.empty(BLOCK, np.int32), np.int32(0)
    shifted = np.empty(BLOCK, np.uint32)
    wide = shifted.view(np.float32)
    for value in integers:
        total += np.int32(value)
    looked_up = TURNED and width >= CHUNK and count >= MOST
    in_vectors = not looked_up and width >= 8 and count >= ROWS
    spaced = _spaced(integers, width * in_vectors)
    tables = _byte_tables(integers, 0 if looked_up or in_vectors else width)
    nibbles = tables_of(integers, width * (looked_up and VBMI))
    shuffled = small_tables_of(integers, width * (looked_up and not VBMI))
    for first in range(0, count, BLOCK):
        start = min(first, max(0, count - MOST))  # a last block of fewer rows overlaps the one before
        some = min(BLOCK, count - start)
        if in_vectors:
            _by_vectors(spaced, signs, sums, start, some)
        elif not looked_up:
            _by_tables(tables, signs, sums, start, some)
        elif VBMI:  # else this is not compiled, which would fail
            by_nibbles(nibbles, signs, sums, start, some)
        elif AVX2_ALONE:
            by_shuffles(shuffled, signs, sums, start, some)
        for at in range(np.uint64(some)):
            shifted[at] = np.uint32(factors[np.uint64(start) + at]) << np.uint32(13)
        for at in range(np.uint64(some)):
            factor = wide[at] * EXPONENTS  # exact; a table of all float16 takes longer
            whole = np.int32(np.int32(2) * sums[at] - total)  # AVX2 cannot turn 64 bits into a float32
            estimate = np.float32(whole) * (factor * scale)
            found[np.uint64(start) + at] = estimate + factor * error
    return found
