"""Inner products of a query of small integers with rows of bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    BYTE,
    INTS,
    LONG,
    VNNI,
    given,
    instruction,
    loaded,
    number,
    place_of,
)
from counterpoint.index.compiled.vnni import added_up, multiplied, summed

__all__ = ["sketched_rows"]

WIDE = 64  # bits multiplied at once
BYTES = ir.VectorType(BYTE, WIDE)
FLAGS = ir.VectorType(ir.IntType(1), WIDE)


@instruction
def _vnni(typingctx: Any, rows: Any, first: Any, query: Any, rounds: Any, rest: Any) -> Any:
    """The sum of a query's integers where a row has bits; `rest` are the bits after `rounds` words."""

    def codegen(*code: Any) -> Any:
        _, builder, _, args = code
        words, asked = place_of(code, 0, args[1], LONG), place_of(code, 2, number(0), INTS)

        def added(word: Any, here: Any, total: Any) -> Any:
            levels = builder.zext(builder.bitcast(word, FLAGS), BYTES)
            of_query = loaded(builder, builder.gep(asked, [here]))
            return multiplied(builder, total, builder.bitcast(levels, INTS), of_query)

        def step(here: Any, total: Any) -> Any:
            return added(loaded(builder, builder.gep(words, [here])), here, total)

        return added_up(builder, added(args[4], args[3], summed(builder, args[3], step)))

    return types.int32(rows, first, query, rounds, rest), codegen


@njit(nogil=True, cache=True)
def _by_vectors(query, signs):
    found, width, flat = np.empty(len(signs), np.float32), np.uint64(signs.shape[1]), signs.reshape(-1)
    rounds, total = width // np.uint64(8), np.int32(0)
    for value in query:
        total += np.int32(value)
    for row in range(np.uint64(len(signs))):
        rest = np.uint64(0)
        for i in range(rounds * np.uint64(8), width):
            rest |= np.uint64(signs[row, i]) << (np.uint64(8) * (i - rounds * np.uint64(8)))
        found[row] = np.float32(2 * _vnni(flat, row * width, query, rounds, rest) - total)
    return found


@njit(nogil=True, cache=True)
def _by_tables(query, signs):
    """Look up the sum for every byte of a row in a table over all byte values."""
    width = np.uint64(signs.shape[1])
    sums = np.zeros((width, 256), np.int16)
    for at in range(width):
        for byte in range(256):
            for place in range(8):
                value = np.int16(query[np.uint64(8) * at + np.uint64(place)])
                sums[at, byte] += value if byte >> place & 1 else -value
    found, whole = np.empty(len(signs), np.float32), width - width % np.uint64(2)
    for row in range(np.uint64(len(signs))):
        one = other = np.int32(0)  # independent sums
        for at in range(np.uint64(0), whole, np.uint64(2)):
            following = at + np.uint64(1)
            one += np.int32(sums[at, signs[row, at]])
            other += np.int32(sums[following, signs[row, following]])
        if whole < width:
            one += np.int32(sums[whole, signs[row, whole]])
        found[row] = np.float32(one + other)
    return found


QUERY: Any = given(types.int8, 1)
SIGNS: Any = given(types.uint8, 2)


@njit(types.float32[::1](QUERY, SIGNS), nogil=True, cache=True)
def sketched_rows(query, signs):
    """`counterpoint.index.sketch.sketched`, compiled.

    Args:
        query: (64 (1 + ⌊b / 8⌋),) int8; zeros where rows have no bits.
        signs: (n, b) uint8.

    Returns:
        (n,) float32.
    """
    return _by_vectors(query, signs) if VNNI else _by_tables(query, signs)
