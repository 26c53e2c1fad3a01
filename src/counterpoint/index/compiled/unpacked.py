"""Unpack packed rows to levels, one byte per component: twice each code, or an 8-bit integer plus 128.

Levels are not negative, as the instruction that multiplies them asks. A level less the integer it means is
the same number for all components.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import BYTE, instruction, loaded, number, place_of

__all__ = ["unpack"]

MANY, FEW = 64, 8  # codes unpacked at once, and where a row has fewer than that


def _bytes(count: int) -> Any:
    return ir.VectorType(BYTE, count)


def _one(builder: Any, source: Any, count: int) -> Any:
    flags = builder.bitcast(loaded(builder, source(ir.IntType(count))), ir.VectorType(ir.IntType(1), count))
    return builder.select(flags, number(2, _bytes(count)), number(0, _bytes(count)))


def _some(bits: int) -> Callable[[Any, Any, int], Any]:
    def made(builder: Any, source: Any, count: int) -> Any:
        """Extract the first codes of all bytes, then the second ones, and so on, and interleave them."""
        each = 8 // bits
        kind = _bytes(count // each)
        packed, mask = loaded(builder, source(kind)), number(2 ** (bits + 1) - 2, kind)
        shifted = [builder.shl(packed, number(1, kind))]
        shifted += [builder.lshr(packed, number(bits * place - 1, kind)) for place in range(1, each)]
        parts = [builder.and_(twice, mask) for twice in shifted]
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


def _eight(builder: Any, source: Any, count: int) -> Any:
    """Signed integers, shifted to start at 0."""
    return builder.xor(loaded(builder, source(_bytes(count))), number(128, _bytes(count)))


def _made(count: int) -> Any:
    @instruction
    def unpacked(typingctx: Any, source: Any, start: Any, bits: Any, target: Any, to: Any) -> Any:
        """Unpack `count` codes from byte `start` of one array to byte `to` of another."""

        def codegen(*code: Any) -> Any:
            context, builder, _, args = code
            done = builder.append_basic_block("done")
            cases = builder.switch(args[2], done)
            for width, made in ((1, _one), (2, _some(2)), (4, _some(4)), (8, _eight)):
                case = builder.append_basic_block(f"of_{width}_bits")
                cases.add_case(number(width), case)
                builder.position_at_end(case)
                found = made(builder, lambda kind: place_of(code, 0, args[1], kind), count)
                builder.store(found, place_of(code, 3, args[4], _bytes(count))).align = 1
                builder.branch(done)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(source, start, bits, target, to), codegen

    return unpacked


_many, _few = _made(MANY), _made(FEW)


@njit(nogil=True, inline="always")
def unpack(values, row, bits, levels, to):
    """Write the levels of one row.

    No function with a loop is called here: numba would count references to the arrays for each row, and that
    took a quarter of the time of a search.

    Args:
        values: (n, bytes) uint8, packed rows; 8-bit rows as signed integers.
        row: number of the row.
        bits: per code.
        levels: uint8, written to.
        to: where the first level goes in `levels`.
    """
    size, few = np.uint64(values.shape[1]), np.uint64(bits)  # bytes of a row, and of eight codes
    each = np.uint64(8 if bits == 1 else 4 if bits == 2 else 2 if bits == 4 else 1)  # faster than dividing
    start, many, done = row * size, few * np.uint64(MANY // FEW), np.uint64(0)
    if size < few:
        flip, mask = np.uint8(128 if bits == 8 else 0), np.uint8((1 << bits) - 1)
        for i in range(size):
            packed, first = values[row, np.uint64(i)] ^ flip, to + np.uint64(i) * each
            for place in range(each):
                code = packed >> np.uint8(np.uint64(place) * few) & mask
                levels[first + np.uint64(place)] = code if bits == 8 else np.uint8(2) * code
        return
    step = few if size < many else many
    while done < size:
        done = min(done, size - step)  # the last vector overlaps the one before
        if step == many:
            _many(values, start + done, bits, levels, to + done * each)
        else:
            _few(values, start + done, bits, levels, to + done * each)
        done += step
