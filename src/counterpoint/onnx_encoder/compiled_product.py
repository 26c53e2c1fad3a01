"""Compiled products of rows with a matrix of 8-bit integers; `eight_bits.product` says what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    BYTE,
    FLOATS,
    INTS,
    LANES,
    WORD,
    fetched,
    given,
    instruction,
    loaded,
    number,
    place_of,
    repeated,
    spread,
)
from counterpoint.index.compiled.products import multiplied
from counterpoint.onnx_encoder.eight_bits import BLOCK, LEAST, TOP, Matrix

__all__ = ["product"]

# Imported code: 270503cd. numba compiles anew when this file changes, but not when that does.

MOST = 8  # rows multiplied at once, as independent sums, with each tile of the matrix
ZERO = 128  # rows are stored without a sign, as the instruction wants them
UNROLLED = 2
AHEAD = 96  # cache lines of the matrix that are prefetched; it is larger than the processor's own caches
BYTES = ir.VectorType(BYTE, LANES)
FLOAT = FLOATS.element


@instruction
def _round_block(typingctx: Any, rows: Any, start: Any, made: Any, scales: Any, place: Any) -> Any:
    """Round the block of `rows` that begins at `start`, into the same place of `made`; store its scale."""

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        source, out = place_of(code, 0, args[1], FLOATS), place_of(code, 2, args[1], BYTES)
        parts = [loaded(builder, builder.gep(source, [number(i)])) for i in range(BLOCK // LANES)]
        kind = ir.FunctionType(FLOATS, [FLOATS])
        absolute, whole = (
            builder.module.declare_intrinsic(f"llvm.{name}.v{LANES}f32", fnty=kind)
            for name in ("fabs", "rint")
        )
        most = number(0.0, FLOATS)
        for each in (builder.call(absolute, [part]) for part in parts):
            most = builder.select(builder.fcmp_ordered(">", each, most), each, most)
        largest = _largest(builder, most)
        top, least = number(float(TOP), FLOAT), number(LEAST, FLOAT)
        builder.store(builder.fdiv(largest, top), place_of(code, 3, args[4], FLOAT))
        there = builder.fcmp_ordered(">=", largest, least)
        factor = builder.select(there, builder.fdiv(top, largest), number(0.0, FLOAT))
        factors = spread(builder, factor, FLOATS)
        for i, part in enumerate(parts):
            found = builder.fptosi(builder.call(whole, [builder.fmul(part, factors)]), INTS)
            unsigned = builder.trunc(builder.add(found, number(ZERO, INTS)), BYTES)
            builder.store(unsigned, builder.gep(out, [number(i)])).align = 1
        return context.get_dummy_value()

    return types.void(rows, start, made, scales, place), codegen


def _largest(builder: Any, lanes: Any) -> Any:
    """The largest of sixteen numbers that are not NaN."""
    kind = ir.FunctionType(FLOAT, [FLOATS])
    reduce = builder.module.declare_intrinsic(f"llvm.vector.reduce.fmax.v{LANES}f32", fnty=kind)
    return builder.call(reduce, [lanes], fastmath=("nnan", "nsz"))


def _multiplier(together: int) -> Any:
    """The instruction that multiplies a tile of a matrix with a group of some rows.

    Its arguments:
        matrix: tiles, scales and sums, flat.
        tile: its number.
        rows: integers and scales, flat.
        group: its number.
        blocks: of a row.
        out: bias and products, flat, first output of the tile in them, and how many products a row has.
    """

    @instruction
    def multiply(typingctx: Any, matrix: Any, tile: Any, rows: Any, group: Any, blocks: Any, out: Any) -> Any:
        def codegen(*code: Any) -> Any:
            _add_products(code, together)
            return code[0].get_dummy_value()

        return types.void(matrix, tile, rows, group, blocks, out), codegen

    return multiply


def _add_products(code: Any, together: int) -> None:
    """Add the code of `_multiplier`; `code` are the arguments of its `codegen`."""
    _, builder, _, args = code
    tile, group, blocks = args[1], args[3], args[4]
    width, lanes = builder.mul(blocks, number(BLOCK)), builder.mul(blocks, number(LANES))
    start = builder.mul(tile, lanes)  # of the tile's scales and sums
    tiles = place_of(code, (0, 0), builder.mul(tile, builder.mul(width, number(LANES))), INTS)
    numbers = [builder.add(builder.mul(group, number(together)), number(row)) for row in range(together)]
    rows = [place_of(code, (2, 0), builder.mul(each, width), WORD) for each in numbers]

    def block(here: Any, before: list[Any]) -> list[Any]:
        place = builder.add(start, builder.mul(here, number(LANES)))
        of_matrix = loaded(builder, place_of(code, (0, 1), place, FLOATS))
        sums = loaded(builder, place_of(code, (0, 2), place, INTS))
        made = []
        for row, total in enumerate(
            _sums(builder, tiles, rows, here, builder.mul(sums, number(-ZERO, INTS)))
        ):
            at = builder.add(builder.mul(numbers[row], blocks), here)
            of_row = spread(builder, loaded(builder, place_of(code, (2, 1), at, FLOAT)), FLOATS)
            found = builder.fmul(builder.fmul(builder.sitofp(total, FLOATS), of_row), of_matrix)
            made.append(builder.fadd(before[row], found))
        return made

    found = repeated(builder, blocks, [number(0.0, FLOATS)] * together, block)
    first, each = (builder.extract_value(args[5], i) for i in (2, 3))
    bias = loaded(builder, place_of(code, (5, 0), first, FLOATS))
    for row, total in enumerate(found):
        at = builder.add(first, builder.mul(numbers[row], each))
        builder.store(builder.fadd(total, bias), place_of(code, (5, 1), at, FLOATS)).align = 1


def _sums(builder: Any, tiles: Any, rows: list[Any], block: Any, first: Any) -> list[Any]:
    """For each row, sixteen sums over the components of a block."""
    start = builder.mul(block, number(BLOCK // 4))

    def step(here: Any, before: list[Any]) -> list[Any]:
        sums = list(before)
        for more in range(UNROLLED):
            place = builder.add(start, builder.add(builder.mul(here, number(UNROLLED)), number(more)))
            of_matrix = loaded(builder, builder.gep(tiles, [place]))
            fetched(builder, builder.gep(tiles, [builder.add(place, number(AHEAD))]))
            for row, words in enumerate(rows):
                of_row = spread(builder, loaded(builder, builder.gep(words, [place])), INTS)
                sums[row] = multiplied(builder, sums[row], of_row, of_matrix)
        return sums

    return repeated(builder, number(BLOCK // 4 // UNROLLED), [first] * len(rows), step)


_by_5, _by_6, _by_7, _by_8 = (_multiplier(together) for together in range(5, MOST + 1))


MATRIX = types.Tuple((given(types.int8, 1), given(types.float32, 1), given(types.int32, 1)))


@njit(types.float32[:, ::1](given(types.float32, 2), MATRIX, given(types.float32, 1)), nogil=True, cache=True)
def _product(rows, matrix, bias):
    """Products of rows that are filled up to whole blocks; the last rows are of no use."""
    count, blocks, tiles = len(rows), rows.shape[1] // BLOCK, len(bias) // LANES
    groups = max(1, -(-count // MOST))
    together = max(5, -(-count // groups))  # groups of one size, so that few rows are of no use
    integers = np.zeros(groups * together * rows.shape[1], np.uint8)
    scales = np.zeros(groups * together * blocks, np.float32)
    found, flat = np.empty((groups * together, len(bias)), np.float32), rows.reshape(-1)
    for place in range(count * blocks):
        _round_block(flat, np.uint64(place * BLOCK), integers, scales, np.uint64(place))
    both, out, chunks = (integers, scales), found.reshape(-1), np.uint64(blocks)
    for tile in range(tiles):  # outside, so that each is read from memory once
        which, to = np.uint64(tile), (bias, out, np.uint64(tile * LANES), np.uint64(len(bias)))
        for group in range(groups):
            if together == 5:
                _by_5(matrix, which, both, np.uint64(group), chunks, to)
            elif together == 6:
                _by_6(matrix, which, both, np.uint64(group), chunks, to)
            elif together == 7:
                _by_7(matrix, which, both, np.uint64(group), chunks, to)
            else:
                _by_8(matrix, which, both, np.uint64(group), chunks, to)
    return found


def product(rows: np.ndarray, matrix: Matrix, bias: np.ndarray) -> np.ndarray:
    """Compute rows · matrixᵀ + bias."""
    whole = tuple(each.reshape(-1) for each in (matrix.tiles, matrix.scales, matrix.sums))
    more, wide = -rows.shape[1] % BLOCK, len(matrix.scales) * LANES - matrix.outputs
    filled = np.pad(rows, ((0, 0), (0, more))) if more else np.ascontiguousarray(rows)
    found = _product(filled, whole, np.pad(bias, (0, wide)) if wide else bias)
    return np.ascontiguousarray(found[: len(rows), : matrix.outputs])
