"""Compiled steps of BERT on rows in float32; `steps.py` says what they compute, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    FLOATS,
    LANES,
    WORD,
    given,
    instruction,
    loaded,
    number,
    place_of,
    repeated,
    spread,
)
from counterpoint.onnx_encoder.steps import ERF, ROOT_HALF

__all__ = ["attended", "gelu", "normalised"]

# Imported code: bc488672. numba compiles anew when this file changes, but not when that does.

FLOAT = FLOATS.element
P6, P5, P4, P3, P2, P1, P0 = (np.float32(each) for each in ERF)
ONE, TWO, HALF, ROOT = (np.float32(each) for each in (1, 2, 0.5, ROOT_HALF))


@instruction
def _weighed(typingctx: Any, factors: Any, rows: Any, count: Any, found: Any) -> Any:
    """Store sixteen sums over `count` rows, at least one, each times its factor, added up in order.

    `factors` are an array and the first place in it; `rows` are an array, the place of sixteen components of
    the first row, and how many a row has; `found` are an array and the place of the sums.
    """

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        first = builder.extract_value(args[0], 1)
        start, stride = (builder.extract_value(args[1], i) for i in (1, 2))

        def step(here: Any, before: list[Any]) -> list[Any]:
            factor = loaded(builder, place_of(code, (0, 0), builder.add(first, here), FLOAT))
            row = builder.add(start, builder.mul(here, stride))
            values = loaded(builder, place_of(code, (1, 0), row, FLOATS))
            return [builder.fadd(before[0], builder.fmul(spread(builder, factor, FLOATS), values))]

        (total,) = repeated(builder, args[2], [number(0.0, FLOATS)], step)
        builder.store(total, place_of(code, (3, 0), builder.extract_value(args[3], 1), FLOATS)).align = 1
        return context.get_dummy_value()

    return types.void(factors, rows, count, found), codegen


@instruction
def _total(typingctx: Any, row: Any, count: Any) -> Any:
    """The sum of a row of `count` vectors, at least one, in the order of `steps._total`."""

    def codegen(*code: Any) -> Any:
        _, builder, _, args = code
        vectors = place_of(code, 0, number(0), FLOATS)

        def step(here: Any, before: list[Any]) -> list[Any]:
            return [builder.fadd(before[0], loaded(builder, builder.gep(vectors, [here])))]

        (total,) = repeated(builder, args[1], [number(0.0, FLOATS)], step)
        while total.type.count > 1:
            half = total.type.count // 2
            lower, upper = (
                ir.Constant(ir.VectorType(WORD, half), [first + lane for lane in range(half)])
                for first in (0, half)
            )
            sides = [builder.shuffle_vector(total, total, lanes) for lanes in (lower, upper)]
            total = builder.fadd(*sides)
        return builder.extract_element(total, number(0, WORD))

    return types.float32(row, count), codegen


ROWS, VECTOR = given(types.float32, 2), given(types.float32, 1)


@njit(types.float32[:, :, ::1](ROWS, VECTOR, types.int64, types.float32), nogil=True, cache=True)
def _scores(made, bias, heads, scale):
    """The scores of each head and pair of positions, less the largest of each position."""
    positions, wide = made.shape
    size, room = wide // 3 // heads, -(-positions // LANES) * LANES
    keys, sums = np.zeros((size, room), np.float32), np.empty(room, np.float32)
    flat, columns = made.reshape(-1), keys.reshape(-1)
    found = np.empty((heads, positions, positions), np.float32)
    scores = found.reshape(-1)
    for head in range(heads):
        key = (heads + head) * size
        for position in range(positions):
            for component in range(size):
                keys[component, position] = made[position, key + component]
        for position in range(positions):
            query = flat, np.uint64(position * wide + head * size)
            for start in range(0, positions, LANES):
                rows = columns, np.uint64(start), np.uint64(room)
                _weighed(query, rows, np.uint64(size), (sums, np.uint64(start)))
            largest, at = np.float32(-np.inf), np.uint64((head * positions + position) * positions)
            for other in range(np.uint64(positions)):
                sums[other] = sums[other] * scale + bias[other]
            for other in range(np.uint64(positions)):
                largest = max(largest, sums[other])
            for other in range(np.uint64(positions)):
                scores[at + other] = sums[other] - largest
    return found


@njit(types.float32[:, ::1](given(types.float32, 3), ROWS, types.int64), nogil=True, cache=True)
def _mixed(shares, made, heads):
    """The values of all positions, mixed by the shares that a position has of each."""
    positions, wide = made.shape
    size, chunks = wide // 3 // heads, -(-positions // LANES)
    room, own = -(-size // LANES) * LANES, np.zeros(chunks * LANES, np.float32)
    values, sums = np.zeros((positions, room), np.float32), np.empty(room, np.float32)
    flat, rows = shares.reshape(-1), values.reshape(-1)
    found = np.empty((positions, heads * size), np.float32)
    made_of = found.reshape(-1)
    for head in range(heads):
        start = (2 * heads + head) * size
        for position in range(positions):
            for component in range(size):
                values[position, component] = made[position, start + component]
        for position in range(positions):
            share = flat, np.uint64((head * positions + position) * positions)
            for lane in range(0, size, LANES):
                value = rows, np.uint64(lane), np.uint64(room)
                _weighed(share, value, np.uint64(positions), (sums, np.uint64(lane)))
            for other in range(np.uint64(positions)):
                own[other] = flat[share[1] + other]
            total, at = _total(own, np.uint64(chunks)), np.uint64((position * heads + head) * size)
            for component in range(np.uint64(size)):
                made_of[at + component] = sums[component] / total
    return found


def attended(made: np.ndarray, bias: np.ndarray, *, heads: int, scale: np.float32) -> np.ndarray:
    """Attention of each position to all; numpy computes the exponentials of both."""
    scores = _scores(made, bias, heads, scale)
    return _mixed(np.exp(scores, out=scores), made, heads)


# A check for division by 0 would keep loops from being vectorised.
@njit(types.float32[:, ::1](ROWS), nogil=True, cache=True, error_model="numpy")
def gelu(rows):
    """The product x · Φ(x)."""
    found = np.empty(rows.shape, np.float32)
    values, made = rows.reshape(-1), found.reshape(-1)
    for i in range(len(values)):
        value = values[i]
        size = abs(value) * ROOT
        power = (((((P6 * size + P5) * size + P4) * size + P3) * size + P2) * size + P1) * size + P0
        power = power * power
        power = power * power
        power = power * power
        power = power * power
        tail = ONE / power
        made[i] = HALF * value * (TWO - tail if value >= 0 else tail)
    return found


@njit(
    types.float32[:, ::1](ROWS, VECTOR, VECTOR, types.float32),
    nogil=True,
    cache=True,
    error_model="numpy",
)
def normalised(rows, weight, bias, epsilon):
    """Layer normalisation of each row."""
    found, size = np.empty(rows.shape, np.float32), np.float32(rows.shape[1])
    chunks = np.uint64(-(-rows.shape[1] // LANES))
    filled = np.zeros(chunks * np.uint64(LANES), np.float32)
    for i in range(len(rows)):
        row, made = rows[i], found[i]
        filled[: len(row)] = row
        mean = _total(filled, chunks) / size
        for k in range(len(row)):
            made[k] = row[k] - mean
            filled[k] = made[k] * made[k]
        deviation = np.sqrt(_total(filled, chunks) / size + epsilon)
        for k in range(len(row)):
            made[k] = made[k] / deviation * weight[k] + bias[k]
    return found
