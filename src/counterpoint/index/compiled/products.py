"""Sums of products of small integers, sixteen at a time.

64 unsigned bytes are multiplied with 64 signed ones, and four neighbouring products are added to each sum.
AVX-512 VNNI has one instruction for that. Other processors need more, and the sums are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from llvmlite import ir

from counterpoint.index.compiled.machine import BYTE, INTS, LANES, VNNI, WORD, X86, number

__all__ = [
    "PAIRS",
    "WORDS",
    "added_up",
    "added_up_four",
    "by_vnni",
    "chosen",
    "few_multiplied",
    "in_pairs",
    "multiplied",
    "unpacked",
]

WIDENED = ir.VectorType(ir.IntType(16), 2 * LANES)  # half of 64 bytes, as numbers of 16 bits
AT_ONCE = 8  # numbers of 16 bits that SSE2 multiplies


def multiplied(builder: Any, total: Any, levels: Any, asked: Any) -> Any:
    """Sixteen sums; to each, four products of an unsigned and a signed byte are added."""
    if VNNI:
        return by_vnni(builder, total, levels, asked)
    return by_pairs(builder, total, levels, asked, pairs_x86 if X86 else pairs)


def by_vnni(builder: Any, total: Any, levels: Any, asked: Any) -> Any:
    """`multiplied` in one instruction."""
    kind = ir.FunctionType(INTS, [INTS] * 3)
    instruction = builder.module.declare_intrinsic("llvm.x86.avx512.vpdpbusd.512", fnty=kind)
    return builder.call(instruction, [total, levels, asked])


def few_multiplied(builder: Any, total: Any, both: Sequence[tuple[Any, Any]]) -> Any:
    """`multiplied` for two pairs, with levels of at most 30, so that four products fit 16 bits.

    Only for a processor with AVX2. It is faster where that has no VNNI.
    """
    lanes, found = 2 * LANES, []
    bytes_at_once, shorts, ints = (ir.VectorType(ir.IntType(8 * size), lanes // size) for size in (1, 2, 4))
    of_bytes = builder.module.declare_intrinsic(
        "llvm.x86.avx2.pmadd.ub.sw", fnty=ir.FunctionType(shorts, [bytes_at_once] * 2)
    )
    of_shorts = builder.module.declare_intrinsic(
        "llvm.x86.avx2.pmadd.wd", fnty=ir.FunctionType(ints, [shorts] * 2)
    )
    whole = ir.VectorType(BYTE, 2 * lanes)
    for half in (range(lanes), range(lanes, 2 * lanes)):
        sides = ([builder.bitcast(each, whole) for each in pair] for pair in both)
        made = [
            builder.call(of_bytes, [chosen(builder, side, side, half) for side in pair]) for pair in sides
        ]
        found.append(builder.call(of_shorts, [builder.add(*made), number(1, shorts)]))
    return builder.add(total, chosen(builder, found[0], found[1], range(LANES)))


def by_pairs(builder: Any, total: Any, levels: Any, asked: Any, add: Callable[..., Any]) -> Any:
    """`multiplied` for numbers of 16 bits: first the even bytes, then the odd ones."""
    levels, asked = (builder.bitcast(each, WIDENED) for each in (levels, asked))
    eight = number(8, WIDENED)
    even = builder.and_(levels, number(255, WIDENED)), builder.ashr(builder.shl(asked, eight), eight)
    odd = builder.lshr(levels, eight), builder.ashr(asked, eight)
    return builder.add(builder.add(total, add(builder, *even)), add(builder, *odd))


def pairs(builder: Any, one: Any, other: Any) -> Any:
    """Sixteen sums of two neighbouring products of 16 bits, on any processor."""
    half, found = number(16, INTS), []
    one, other = (builder.bitcast(each, INTS) for each in (one, other))
    for first in (True, False):
        sides = (builder.shl(each, half) if first else each for each in (one, other))
        found.append(builder.mul(*(builder.ashr(side, half) for side in sides)))
    return builder.add(*found)


def pairs_x86(builder: Any, one: Any, other: Any) -> Any:
    """`pairs` by an instruction of SSE2, which the compiler does not find by itself."""
    given, made = ir.VectorType(WIDENED.element, AT_ONCE), ir.VectorType(WORD, AT_ONCE // 2)
    kind = ir.FunctionType(made, [given] * 2)
    instruction = builder.module.declare_intrinsic("llvm.x86.sse2.pmadd.wd", fnty=kind)
    found = []
    for at in range(0, WIDENED.count, AT_ONCE):
        sides = (chosen(builder, each, each, range(at, at + AT_ONCE)) for each in (one, other))
        found.append(builder.call(instruction, list(sides)))
    while len(found) > 1:
        joined = range(2 * found[0].type.count)
        found = [chosen(builder, *found[i : i + 2], joined) for i in range(0, len(found), 2)]
    return found[0]


def added_up(builder: Any, total: Any) -> Any:
    """The sum of sixteen sums."""
    kind = ir.FunctionType(WORD, [INTS])
    return builder.call(builder.module.declare_intrinsic("llvm.vector.reduce.add.v16i32", fnty=kind), [total])


def added_up_four(builder: Any, totals: list[Any]) -> Any:
    """The sums of four times sixteen sums, as a vector of four. One by one would take twice as long."""
    first, second = (_added(builder, totals[i], totals[i + 1], WORDS) for i in (0, 2))
    both = _added(builder, first, second, PAIRS)
    for lanes in (8, 4):
        halves = (range(lanes), range(lanes, 2 * lanes))
        both = builder.add(*(chosen(builder, both, both, half) for half in halves))
    return both


def in_pairs(builder: Any, one: Any, other: Any) -> Any:
    """Sixteen sums of neighbouring lanes, eight of each vector."""
    evens, odds = (chosen(builder, one, other, range(side, 2 * LANES, 2)) for side in range(2))
    return builder.add(evens, odds)


WORDS, PAIRS = 1, 2  # lanes that stay together


def _added(builder: Any, one: Any, other: Any, together: int) -> Any:
    """Add the lanes of each group of four, in pairs; the sums of `one` and of `other` alternate."""
    return builder.add(*(unpacked(builder, (one, other), half, together) for half in range(2)))


def unpacked(builder: Any, both: tuple[Any, Any], half: int, together: int) -> Any:
    """Half of each group of four lanes, of two vectors in turn, as AVX's unpack instructions."""
    at = [4 * group + 2 * half + i for group in range(LANES // 4) for i in range(2)]
    pairs = [at[i : i + together] for i in range(0, len(at), together)]
    return chosen(
        builder, *both, [lane for pair in pairs for lane in (*pair, *(LANES + each for each in pair))]
    )


def chosen(builder: Any, one: Any, other: Any, lanes: Iterable[int]) -> Any:
    """Some lanes of two vectors; those of the second are counted on from the first."""
    mask = ir.Constant(ir.VectorType(WORD, len(list(lanes))), list(lanes))
    return builder.shuffle_vector(one, other, mask)
