"""Unpack packed rows to levels, one byte per component: twice each code, or an 8-bit integer plus 128.

Levels are not negative, as the instruction that multiplies them asks. A level less the integer it means is
the same number for all components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from llvmlite import ir
from numba import types

from counterpoint.index.compiled.dots import ROWS
from counterpoint.index.compiled.machine import (
    BYTE,
    LONG,
    VBMI,
    instruction,
    loaded,
    number,
    place_of,
    repeated,
)

__all__ = ["unpack"]
MANY, FEW = 64, 8  # codes unpacked at once, and where a row has fewer than that
LONGS = ir.VectorType(LONG, 8)


@instruction
def unpack(typingctx: Any, values: Any, starts: Any, size: Any, bits: Any, levels: Any, width: Any) -> Any:
    """Write the levels of eight rows.

    `values` are packed rows, flat, as uint8; those of 8 bits are signed integers. `starts`, int64, say where
    each of the eight begins, and `size` how many bytes one has. One row of `levels`, uint8, follows `width`
    levels after the one before.
    """

    def codegen(*code: Any) -> Any:
        context, builder, _, args = code
        size, rows = args[2], []
        for row in range(ROWS):
            start = loaded(builder, place_of(code, 1, number(row), LONG))
            goal = builder.mul(args[5], number(row))
            rows.append((place_of(code, 0, start, BYTE), place_of(code, 4, goal, BYTE)))
        done = builder.append_basic_block("done")
        cases = builder.switch(args[3], done)
        for bits, made in MADE.items():
            case = builder.append_basic_block(f"of_{bits}_bits")
            cases.add_case(number(bits), case)
            builder.position_at_end(case)
            steps = MANY * bits // 8, FEW * bits // 8, 1

            def one(step: int, bits: int = bits, made: Callable[..., Any] = made) -> None:
                _write(builder, size, rows, (step, 8 // bits, made))

            _with_the_first_that_fits(builder, size, steps, one)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(values, starts, size, bits, levels, width), codegen


def _with_the_first_that_fits(
    builder: Any, size: Any, steps: Sequence[int], write: Callable[[int], None]
) -> None:
    """Add code for each number of bytes; the one that runs is the first of at most `size`, or the last."""
    if len(steps) == 1:
        write(steps[0])
        return
    fits = builder.icmp_unsigned(">=", size, number(steps[0]))
    with builder.if_else(fits) as (then, otherwise):
        with then:
            write(steps[0])
        with otherwise:
            _with_the_first_that_fits(builder, size, steps[1:], write)


def _write(builder: Any, size: Any, rows: Sequence[tuple[Any, Any]], how: tuple[int, int, Any]) -> None:
    """Unpack rows some bytes at a time; the last of them may overlap those before."""
    step, each, made = how
    last = builder.sub(size, number(step))

    def one(here: Any, _: list[Any]) -> list[Any]:
        at = builder.mul(here, number(step))
        at = builder.select(builder.icmp_unsigned("<", at, last), at, last)
        for source, goal in rows:
            found = made(builder, builder.gep(source, [at]), step * each)
            to = builder.gep(goal, [builder.mul(at, number(each))])
            builder.store(found, builder.bitcast(to, found.type.as_pointer())).align = 1
        return []

    repeated(builder, builder.udiv(builder.add(size, number(step - 1)), number(step)), [], one)


def _bytes(count: int) -> Any:
    return ir.VectorType(BYTE, count)


def _read(builder: Any, source: Any, kind: Any) -> Any:
    return loaded(builder, builder.bitcast(source, kind.as_pointer()))


def _one(builder: Any, source: Any, count: int) -> Any:
    flags = builder.bitcast(_read(builder, source, ir.IntType(count)), ir.VectorType(ir.IntType(1), count))
    return builder.select(flags, number(2, _bytes(count)), number(0, _bytes(count)))


def _some(bits: int) -> Callable[[Any, Any, int], Any]:
    def made(builder: Any, source: Any, count: int) -> Any:
        spread = _taken_out if VBMI and count == MANY else _interleaved
        return builder.and_(spread(builder, source, bits, count), number(2 ** (bits + 1) - 2, _bytes(count)))

    return made


def _taken_out(builder: Any, source: Any, bits: int, count: int) -> Any:
    """Codes of a row, from the second bit of each byte on, by an instruction of VBMI.

    From each word of 64 bits it takes eight bits at each of eight places. A word is given eight codes.
    """
    words = builder.zext(_read(builder, source, ir.VectorType(ir.IntType(8 * bits), 8)), LONGS)
    places = ir.Constant(_bytes(count), [(bits * place - 1) % 64 for place in range(8)] * 8)
    kind = ir.FunctionType(_bytes(count), [_bytes(count)] * 2)
    taken = builder.module.declare_intrinsic("llvm.x86.avx512.pmultishift.qb.512", fnty=kind)
    return builder.call(taken, [places, builder.bitcast(words, _bytes(count))])


def _interleaved(builder: Any, source: Any, bits: int, count: int) -> Any:
    """The same: the first codes of all bytes, then the second ones, and so on, and interleave them."""
    each = 8 // bits
    kind = _bytes(count // each)
    packed = _read(builder, source, kind)
    parts = [builder.shl(packed, number(1, kind))]
    parts += [builder.lshr(packed, number(bits * place - 1, kind)) for place in range(1, each)]
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [_side_by_side(builder, parts[i], parts[i + half]) for i in range(half)]
    return parts[0]


def _side_by_side(builder: Any, one: Any, other: Any) -> Any:
    """Interleave two vectors: the first of each, the second of each, and so on."""
    count = one.type.count
    order = [lane for pair in zip(range(count), range(count, 2 * count), strict=True) for lane in pair]
    places = ir.Constant(ir.VectorType(ir.IntType(32), 2 * count), order)
    return builder.shuffle_vector(one, other, places)


def _eight(builder: Any, source: Any, count: int) -> Any:
    """Signed integers, shifted to start at 0."""
    return builder.xor(_read(builder, source, _bytes(count)), number(128, _bytes(count)))


MADE: Mapping[int, Callable[[Any, Any, int], Any]] = MappingProxyType(
    {1: _one, 2: _some(2), 4: _some(4), 8: _eight}
)
"""By number of bits, what adds code that makes the levels of some codes, from a pointer to them."""
