"""Which documents the fit of means and centroids has seen, and which were added later."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from counterpoint.index.segment import Segment

__all__ = ["Split", "seen_and_later", "seen_and_later_counts"]

ALL = 2**63 - 1  # larger than any place
Split = tuple[Int[np.ndarray, " s"], Int[np.ndarray, " l"]]
"""Rows of the live documents of a segment: of those that its fit has seen, and of those added later."""


def seen_and_later(segments: Sequence[Segment]) -> list[Split]:
    """Split the live documents of each segment by whether its fit has seen them.

    A fit has seen the first documents, in the order of adding, of the segments that share it: as many as it
    was made on, including deleted ones that are still stored. Where a compaction has dropped such, too many
    documents count as seen. Documents that wait in 8 bits were all added later. Indexes up to format 4 do not
    name the fit of their only segment, which has seen all of it.
    """
    ends = np.cumsum([each.documents for each in segments])
    places = [
        np.arange(end - each.documents, end) if each.places is None else each.places
        for each, end in zip(segments, ends, strict=True)
    ]
    alike: dict[str | None, list[Int[np.ndarray, " n"]]] = {}
    for segment, mine in zip(segments, places, strict=True):
        alike.setdefault(segment.entry.fit, []).append(mine)
    fitted = {each.entry.fit: each.entry.fitted for each in segments}
    limits = {fit: _limit(np.concatenate(every), fitted[fit]) for fit, every in alike.items()}
    found: list[Split] = []
    for segment, mine in zip(segments, places, strict=True):
        entry, rows = segment.entry, segment.rows
        limit = ALL if entry.fit is None and not entry.codecs else limits[entry.fit]
        seen = mine[rows] < limit
        found.append((rows[seen], rows[~seen]))
    return found


def seen_and_later_counts(segments: Sequence[Segment]) -> tuple[int, int]:
    """How many live documents each of the two kinds has; looks at no document if none is deleted."""
    if any(segment.deletes is not None for segment in segments):
        split = seen_and_later(segments)
        seen, later = (sum(len(rows[i]) for rows in split) for i in (0, 1))
        return seen, later
    total = sum(segment.documents for segment in segments)
    later = sum(each.documents for each in segments if each.entry.fit is None and each.entry.codecs)
    fits = {each.entry.fit: each.entry.fitted for each in segments if each.entry.fit is not None}
    for fit, fitted in fits.items():
        later += max(0, sum(each.documents for each in segments if each.entry.fit == fit) - fitted)
    return total - later, later


def _limit(places: Int[np.ndarray, " n"], count: int) -> int:
    """What exactly the `count` smallest places are smaller than; `ALL` if there are no more than these."""
    return ALL if count >= len(places) else int(np.partition(places, count)[count])
