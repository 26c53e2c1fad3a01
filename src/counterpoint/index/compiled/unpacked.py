"""Unpack the codes of packed rows, from 0 up, to one byte each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import BYTE, LONG, instruction, loaded, number, place_of

__all__ = ["unpack"]

MANY = 64  # codes unpacked at once
BYTES = ir.VectorType(BYTE, MANY)
FLAGS = ir.VectorType(ir.IntType(1), MANY)


def _one(builder: Any, source: Any) -> Any:
    return builder.zext(builder.bitcast(loaded(builder, source(LONG)), FLAGS), BYTES)


def _few(bits: int) -> Callable[[Any, Any], Any]:
    def made(builder: Any, source: Any) -> Any:
        """Extract the first codes of all bytes, then the second ones, and so on, and interleave them."""
        each = 8 // bits
        kind = ir.VectorType(BYTE, MANY // each)
        packed, mask = loaded(builder, source(kind)), number(2**bits - 1, kind)
        parts = [
            builder.and_(builder.lshr(packed, number(bits * place, kind)), mask) for place in range(each)
        ]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [_side_by_side(builder, parts[i], parts[i + half]) for i in range(half)]
        return parts[0]

    return made


def _side_by_side(builder: Any, one: Any, other: Any) -> Any:
    """Interleave two vectors: the first of each, the second of each, and so on."""
    count = one.type.count
    order = [lane for pair in zip(range(count), range(count, 2 * count), strict=True) for lane in pair]
    places = ir.Constant(ir.VectorType(ir.IntType(32), 2 * count), order)
    return builder.shuffle_vector(one, other, places)


def _eight(builder: Any, source: Any) -> Any:
    """Signed integers, shifted to start at 0."""
    return builder.xor(loaded(builder, source(BYTES)), number(128, BYTES))


def _made(many: Callable[[Any, Any], Any]) -> Any:
    @instruction
    def unpacked(typingctx: Any, source: Any, start: Any, target: Any, to: Any) -> Any:
        """Unpack `MANY` codes from byte `start` of one array to byte `to` of another."""

        def codegen(*code: Any) -> Any:
            context, builder, _, args = code
            found = many(builder, lambda kind: place_of(code, 0, args[1], kind))
            builder.store(found, place_of(code, 2, args[3], BYTES)).align = 1
            return context.get_dummy_value()

        return types.void(source, start, target, to), codegen

    return unpacked


_of_1, _of_2, _of_4, _of_8 = (_made(many) for many in (_one, _few(2), _few(4), _eight))


@njit(nogil=True, cache=True)
def _few_codes(values, row, bits, levels, to):
    """Write the codes of one row with fewer than `MANY`."""
    mask, flip = np.uint8((1 << bits) - 1), np.uint8(128 if bits == 8 else 0)
    for i in range(values.shape[1]):
        packed = values[row, np.uint64(i)] ^ flip
        for shift in range(0, 8, bits):
            levels[to] = packed >> np.uint8(shift) & mask
            to += np.uint64(1)


@njit(nogil=True, inline="always")
def unpack(values, row, bits, levels, to):
    """Write the codes of one row.

    Args:
        values: (n, bytes) uint8, packed rows; 8-bit rows as signed integers.
        row: number of the row.
        bits: per code.
        levels: uint8, written to.
        to: where the first code goes in `levels`.
    """
    size = np.uint64(values.shape[1])
    each = np.uint64(8 if bits == 1 else 4 if bits == 2 else 2 if bits == 4 else 1)  # faster than dividing
    start, step, done = row * size, np.uint64(MANY // 8 * bits), np.uint64(0)
    if size < step:
        _few_codes(values, row, bits, levels, to)
        return
    while done < size:
        done = min(done, size - step)  # the last vector overlaps the one before
        if bits == 1:
            _of_1(values, start + done, levels, to + done * each)
        elif bits == 2:
            _of_2(values, start + done, levels, to + done * each)
        elif bits == 4:
            _of_4(values, start + done, levels, to + done * each)
        else:
            _of_8(values, start + done, levels, to + done * each)
        done += step
