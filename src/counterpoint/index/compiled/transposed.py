"""Turn vectors around: what lies in sixteen vectors side by side becomes sixteen vectors."""

from __future__ import annotations

from typing import Any

from counterpoint.index.compiled.machine import LANES
from counterpoint.index.compiled.products import PAIRS, WORDS, chosen, unpacked

__all__ = ["by_lanes", "by_words", "fours"]

FOUR = 4


def by_words(builder: Any, rows: list[Any]) -> list[Any]:
    """Turn sixteen rows of four words into four vectors: all first words, all second ones, and so on."""
    joined = []
    for first in range(FOUR):  # every fourth row, so that the words end up in the order of the rows
        halves = [
            chosen(builder, rows[i], rows[i + FOUR], range(2 * FOUR)) for i in (first, first + 2 * FOUR)
        ]
        joined.append(chosen(builder, halves[0], halves[1], range(LANES)))
    return fours(builder, joined)


def by_lanes(builder: Any, rows: list[Any]) -> list[Any]:
    """Turn sixteen vectors of sixteen lanes into the vectors of each lane."""
    groups = [fours(builder, rows[i : i + FOUR]) for i in range(0, LANES, FOUR)]
    found = []
    for group in range(FOUR):
        lanes = [*range(FOUR * group, FOUR * (group + 1))]
        both = [*lanes, *(LANES + lane for lane in lanes)]
        for lane in range(FOUR):
            lower, upper = (chosen(builder, groups[i][lane], groups[i + 1][lane], both) for i in (0, 2))
            found.append(chosen(builder, lower, upper, range(LANES)))
    return found


def fours(builder: Any, rows: list[Any]) -> list[Any]:
    """Turn four vectors around, within each group of four lanes."""
    found = []
    for half in range(2):
        pairs = [unpacked(builder, (rows[i], rows[i + 1]), half, WORDS) for i in (0, 2)]
        found += [unpacked(builder, (pairs[0], pairs[1]), side, PAIRS) for side in range(2)]
    return found
