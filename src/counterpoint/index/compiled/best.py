"""Which of many scores are high: the highest of each group, and the positions above a bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types

from counterpoint.index.compiled.machine import (
    FLOATS,
    LANES,
    LONG,
    given,
    instruction,
    loaded,
    number,
    place_of,
    spread,
)

__all__ = ["GROUP", "highest", "reaching"]

# Imported code: ca85fa7d. numba compiles anew when this file changes, but not when that does.

GROUP = 64  # scores, a bit of an integer each
SCORES: Any = given(types.float32, 1)


def _sixteens(code: Any) -> list[Any]:
    """The scores of a group, given an array and a place in it."""
    builder, first = code[1], place_of(code, 0, code[3][1], FLOATS)
    return [loaded(builder, builder.gep(first, [number(i)])) for i in range(GROUP // LANES)]


@instruction
def _reached(typingctx: Any, scores: Any, first: Any, least: Any, above: Any) -> Any:
    """A bit for each score of a group: whether it is at least `least`, or above it."""

    def codegen(*code: Any) -> Any:
        builder, (_, _, least, above) = code[1], code[3]
        wanted, found = spread(builder, least, FLOATS), number(0)
        for i, some in enumerate(_sixteens(code)):
            reached, higher = (builder.fcmp_ordered(sign, some, wanted) for sign in (">=", ">"))
            bits = builder.bitcast(builder.select(above, higher, reached), ir.IntType(LANES))
            found = builder.or_(found, builder.shl(builder.zext(bits, LONG), number(LANES * i)))
        return found

    return types.uint64(scores, first, least, above), codegen


@instruction
def _first_bit(typingctx: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set, of at least one."""

    def codegen(*code: Any) -> Any:
        return code[1].cttz(code[3][0], number(1, ir.IntType(1)))

    return types.uint64(bits), codegen


@instruction
def _highest_of(typingctx: Any, scores: Any, first: Any) -> Any:
    """The highest score of a group."""

    def codegen(*code: Any) -> Any:
        builder, found = code[1], _sixteens(code)
        while len(found) > 1:
            found = [_higher(builder, *found[i : i + 2]) for i in range(0, len(found), 2)]
        (best,), half = found, LANES // 2
        while half:
            places = [(i + half) % LANES for i in range(LANES)]
            other = builder.shuffle_vector(
                best, best, ir.Constant(ir.VectorType(ir.IntType(32), LANES), places)
            )
            best, half = _higher(builder, best, other), half // 2
        return builder.extract_element(best, number(0, ir.IntType(32)))

    return types.float32(scores, first), codegen


def _higher(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


@njit(types.float32[::1](SCORES), nogil=True, cache=True)
def highest(scores):
    """The highest of every `GROUP` scores; the last group may be smaller."""
    count = np.uint64(len(scores))
    whole = count // np.uint64(GROUP)
    found = np.empty((len(scores) + GROUP - 1) // GROUP, np.float32)
    for group in range(whole):
        found[group] = _highest_of(scores, group * np.uint64(GROUP))
    if whole * np.uint64(GROUP) < count:
        found[whole] = scores[whole * np.uint64(GROUP) :].max()
    return found


@njit(nogil=True, inline="always")
def _written(scores, start, bound, found, count):
    """Append to `found` the positions of a whole group that reach the bound; how many there are then."""
    bits = _reached(scores, start, bound[0], bound[1])
    while bits:
        found[count] = start + _first_bit(bits)
        count += np.uint64(1)
        bits &= bits - np.uint64(1)
    return count


@njit(nogil=True, inline="always")
def _reaches(score, bound):
    least, above = bound
    return score > least if above else score >= least


@njit(types.int64[::1](SCORES, SCORES, types.float32, types.boolean), nogil=True, cache=True)
def reaching(scores, peaks, least, above):
    """The positions of scores of at least `least`, or above it, ascending.

    Args:
        scores: no NaN.
        peaks: `highest` of them.
        least: the bound.
        above: leave out those that are equal to it.
    """
    bound = least, above
    each, whole = np.uint64(GROUP), np.uint64(len(scores)) // np.uint64(GROUP)
    chosen, groups = np.empty(len(peaks), np.int64), np.uint64(0)
    end = whole // each * each
    for at in range(np.uint64(0), end, each):
        groups = _written(peaks, at, bound, chosen, groups)
    for at in range(end, whole):
        if _reaches(peaks[at], bound):
            chosen[groups] = at
            groups += np.uint64(1)
    found, count = np.empty(groups * each + np.uint64(GROUP), np.int64), np.uint64(0)
    for group in range(groups):
        count = _written(scores, np.uint64(chosen[group]) * each, bound, found, count)
    for at in range(whole * each, np.uint64(len(scores))):
        if _reaches(scores[at], bound):
            found[count] = at
            count += np.uint64(1)
    return found[:count].copy()
