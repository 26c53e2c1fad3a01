"""Inner products of queries with every row of a table of 8-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    INTS,
    LANES,
    given,
    instruction,
    loaded,
    number,
    place_of,
    prefetch,
    repeated,
)
from counterpoint.index.compiled.products import added_up, multiplied

__all__ = ["scan_int8", "scan_some"]

# Imported code: f4506cfe. numba compiles anew when this file changes, but not when that does.

WIDE = 4 * LANES  # components multiplied at once
AHEAD = 8  # rows that are prefetched
BYTES = ir.VectorType(ir.IntType(8), WIDE)


@instruction
def _whole(typingctx: Any, row: Any, first: Any, query: Any, of_query: Any, rounds: Any) -> Any:
    """The sum over `rounds` (at least 1) times `WIDE` components of (row + 128) times query."""

    def codegen(*code: Any) -> Any:
        _, builder, _, args = code
        rows, queries = (place_of(code, which, args[which + 1], BYTES) for which in (0, 2))

        def added(here: Any, totals: list[Any]) -> list[Any]:
            levels = builder.xor(loaded(builder, builder.gep(rows, [here])), number(128, BYTES))
            asked = builder.bitcast(loaded(builder, builder.gep(queries, [here])), INTS)
            return [multiplied(builder, totals[0], builder.bitcast(levels, INTS), asked)]

        return added_up(builder, repeated(builder, args[4], [number(0, INTS)], added)[0])

    return types.int32(row, first, query, of_query, rounds), codegen


@njit(nogil=True, inline="always")
def _product(queries, query, values, row):
    """The inner product of two rows, plus `_surplus`."""
    dim = np.uint64(values.shape[1])
    rounds, first, of_query = dim // np.uint64(WIDE), row * dim, query * dim
    total = _whole(values, first, queries, of_query, rounds) if rounds else np.int32(0)
    for i in range(rounds * np.uint64(WIDE), dim):
        total += np.int32(values[row, i]) * np.int32(queries[query, i])
    return total


@njit(nogil=True, cache=True)
def _surplus(queries):
    """The excess in products of whole vectors: for each query, 128 times the sum of their components."""
    found, end = np.zeros(len(queries), np.int32), queries.shape[1] // WIDE * WIDE
    for query in range(len(queries)):
        for i in range(end):
            found[query] += np.int32(128) * np.int32(queries[query, i])
    return found


BYTE_2, FLOAT_1, HALF_1 = given(types.int8, 2), given(types.float32, 1), given(types.uint16, 1)


@njit(types.float32[:, ::1](BYTE_2, FLOAT_1, BYTE_2, HALF_1, FLOAT_1), nogil=True, cache=True)
def scan_int8(queries, scales, values, factors, halves):
    """Exact integer products, times the factor of the row and then the scale of the query.

    Args:
        queries: (q, d) int8.
        scales: (q,) float32.
        values: (n, d) int8.
        factors: (n,) float16 as uint16.
        halves: `counterpoint.index.compiled.maxsim.HALVES`.

    Returns:
        (q, n) float32.
    """
    found, surplus = np.empty((len(queries), len(values)), np.float32), _surplus(queries)
    for row in range(np.uint64(len(values))):
        factor = halves[factors[row]]
        for query in range(np.uint64(len(queries))):
            # As int32, so that a sum that was too large is right again.
            total = np.int32(_product(queries, query, values, row) - surplus[query])
            found[query, row] = np.float32(total) * factor * scales[query]
    return found


@njit(
    types.float32[::1](BYTE_2, FLOAT_1, BYTE_2, HALF_1, FLOAT_1, given(types.int64, 1)),
    nogil=True,
    cache=True,
)
def scan_some(queries, scales, values, factors, halves, rows):
    """`scan_int8` for one query and some rows."""
    found, surplus, first = np.empty(len(rows), np.float32), _surplus(queries)[0], np.uint64(0)
    dim, last = np.uint64(values.shape[1]), len(rows) - 1
    for at in range(len(rows)):
        # Rows lie far apart, so the processor cannot prefetch them itself.
        soon = np.uint64(rows[min(at + AHEAD, last)])
        for place in range(np.uint64(0), dim, np.uint64(WIDE)):
            prefetch(values, soon * dim + place)
        prefetch(factors, soon)
        row = np.uint64(rows[at])
        total = np.int32(_product(queries, first, values, row) - surplus)
        found[at] = np.float32(total) * halves[factors[row]] * scales[0]
    return found
