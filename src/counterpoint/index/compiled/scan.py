"""Inner products of queries with every row of a table of 8-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    INTS,
    LANES,
    VNNI,
    WORD,
    instruction,
    loaded,
    number,
    place_of,
    prefetch,
)

__all__ = ["scan_int8", "scan_some"]

WIDE = 4 * LANES  # components that are multiplied at once
AHEAD = 8  # rows that are fetched before they are needed
BYTES = ir.VectorType(ir.IntType(8), WIDE)


@instruction
def _vnni(typingctx: Any, row: Any, first: Any, query: Any, of_query: Any, rounds: Any) -> Any:
    """The sum over `rounds` times `WIDE` components of (row + 128) times query."""

    def codegen(*code: Any) -> Any:
        context, builder, signature, args = code
        multiply = builder.module.declare_intrinsic(
            "llvm.x86.avx512.vpdpbusd.512", fnty=ir.FunctionType(INTS, [INTS] * 3)
        )
        sum_up = builder.module.declare_intrinsic(
            "llvm.vector.reduce.add.v16i32", fnty=ir.FunctionType(WORD, [INTS])
        )
        rows, queries = (place_of(code, which, args[which + 1], BYTES) for which in (0, 2))
        start, loop, done = builder.block, *(builder.append_basic_block(name) for name in ("loop", "done"))
        builder.cbranch(builder.icmp_unsigned(">", args[4], number(0)), loop, done)
        builder.position_at_end(loop)
        here, total = builder.phi(args[4].type), builder.phi(INTS)
        levels = builder.xor(loaded(builder, builder.gep(rows, [here])), number(128, BYTES))
        asked = builder.bitcast(loaded(builder, builder.gep(queries, [here])), INTS)
        after = builder.call(multiply, [total, builder.bitcast(levels, INTS), asked])
        following = builder.add(here, number(1))
        for value, first_value, next_value in ((here, number(0), following), (total, number(0, INTS), after)):
            value.add_incoming(first_value, start)
            value.add_incoming(next_value, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, args[4]), loop, done)
        builder.position_at_end(done)
        found = builder.phi(INTS)
        found.add_incoming(number(0, INTS), start)
        found.add_incoming(after, loop)
        return builder.call(sum_up, [found])

    return types.int32(row, first, query, of_query, rounds), codegen


@njit(nogil=True, cache=True)
def _plain(row, first, query, of_query, rounds):
    """The same by a loop."""
    total = np.int32(0)
    for i in range(rounds * np.uint64(WIDE)):
        total += (np.int32(row.flat[first + i]) + np.int32(128)) * np.int32(query.flat[of_query + i])
    return total


_whole: Any = _vnni if VNNI else _plain


@njit(nogil=True, inline="always")
def _product(queries, query, values, row):
    """The inner product of two rows, plus `_surplus`."""
    dim = np.uint64(values.shape[1])
    rounds, first, of_query = dim // np.uint64(WIDE), row * dim, query * dim
    total = _whole(values, first, queries, of_query, rounds)
    for i in range(rounds * np.uint64(WIDE), dim):
        total += np.int32(values[row, i]) * np.int32(queries[query, i])
    return total


@njit(nogil=True, cache=True)
def _surplus(queries):
    """What products of whole vectors have too much: for each query 128 times the sum of what is in them."""
    found, end = np.zeros(len(queries), np.int32), queries.shape[1] // WIDE * WIDE
    for query in range(len(queries)):
        for i in range(end):
            found[query] += np.int32(128) * np.int32(queries[query, i])
    return found


def _given(kind: Any, dimensions: int) -> Any:
    return types.Array(kind, dimensions, "C", readonly=True)


BYTE_2, FLOAT_1, HALF_1 = _given(types.int8, 2), _given(types.float32, 1), _given(types.uint16, 1)


@njit(types.float32[:, ::1](BYTE_2, FLOAT_1, BYTE_2, HALF_1, FLOAT_1), nogil=True, cache=True)
def scan_int8(queries, scales, values, factors, halves):
    """Exact products of integers, times the factor of the row and then the scale of the query.

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
            total = _product(queries, query, values, row) - surplus[query]
            found[query, row] = np.float32(total) * factor * scales[query]
    return found


@njit(
    types.float32[::1](BYTE_2, FLOAT_1, BYTE_2, HALF_1, FLOAT_1, _given(types.int64, 1)),
    nogil=True,
    cache=True,
)
def scan_some(queries, scales, values, factors, halves, rows):
    """`scan_int8` of one query with some rows only."""
    found, surplus, first = np.empty(len(rows), np.float32), _surplus(queries)[0], np.uint64(0)
    dim, last = np.uint64(values.shape[1]), len(rows) - 1
    for at in range(len(rows)):
        # Rows lie far apart, and the processor does not foresee where.
        soon = np.uint64(rows[min(at + AHEAD, last)])
        for place in range(np.uint64(0), dim, np.uint64(WIDE)):
            prefetch(values, soon * dim + place)
        prefetch(factors, soon)
        row = np.uint64(rows[at])
        total = _product(queries, first, values, row) - surplus
        found[at] = np.float32(total) * halves[factors[row]] * scales[0]
    return found
