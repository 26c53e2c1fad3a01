"""Which segments a compaction makes one of.

Each commit that adds documents makes a segment, and a deleted document keeps its room. So after a commit:

- where `RUN` segments of a kind are of one size class, these and all smaller ones behind them become one. A
  class has the segments of fewer than 8, 64, 512, ... live documents. One that stands before a larger one
  counts as of that one's class, so there are less than `RUN` segments of each class. A document is written
  again about once for each class, and never more than `RUN` times for each;
- a segment of which at least half of the documents are deleted is written again without them.

Documents keep their order, so only neighbours become one.

Documents that are added are *fresh*: their rows wait in 8 bits where the set has fewer, since few documents
have no means worth having. Once `ENOUGH` fresh documents become one segment they are coded: by the last fit,
if it was made on at least as many documents, else by a fit of their own. Segments that share a fit are a
kind, and so are fresh ones; kinds stay apart. So there are about as many fits as times that the index
doubled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from counterpoint.index.manifest import SegmentEntry

__all__ = ["ENOUGH", "RUN", "Merge", "all_due", "due"]

RUN = 8
ENOUGH = 1000  # fresh documents that are worth coding


@final
@dataclass(frozen=True)
class Merge:
    """Neighbours that become one segment.

    Attributes:
        first: the number of the first.
        end: that after the last.
        codes: whether fresh documents are coded.
        fit: of another segment, by which they are; None for one of their own.
    """

    first: int
    end: int
    codes: bool = False
    fit: str | None = None


def due(segments: Sequence[SegmentEntry]) -> Merge | None:
    """What the rule has done first; None where nothing is due."""
    for first, end in _kinds(segments):
        classes = [_class(each) for each in segments[first:end]]
        classes = [max(classes[i:]) for i in range(len(classes))]  # never rising
        for size in sorted(set(classes)):
            if classes.count(size) >= RUN:
                return _merge(segments, first + classes.index(size), end)
    for number, segment in enumerate(segments):
        if segment.live and 2 * segment.deleted >= segment.documents:
            return _merge(segments, number, number + 1)
    return None


def all_due(segments: Sequence[SegmentEntry]) -> Merge | None:
    """What a compaction by command does first: neighbours of a kind become one, and no deletes are left.

    Fresh documents come before all else, and with them the neighbours that they share a fit with from then
    on, so that these are written once.
    """
    groups = list(_kinds(segments))
    merges = [_merge(segments, first, end) for first, end in groups]
    for number, found in enumerate(merges):
        if found.codes:
            beside = [groups[i] for i in (number - 1, number + 1) if 0 <= i < len(groups)]
            same = [each for each in beside if found.fit and segments[each[0]].fit == found.fit]
            edges = [edge for each in (*same, groups[number]) for edge in each]
            return replace(found, first=min(edges), end=max(edges))
    for found in merges:
        some = segments[found.first : found.end]
        if any(each.live for each in some) and (len(some) > 1 or some[0].deleted):
            return found
    return None


def _merge(segments: Sequence[SegmentEntry], first: int, end: int) -> Merge:
    """What becomes of fresh documents: coded or not, and by what."""
    live = sum(each.live for each in segments[first:end])
    if not segments[first].codecs or live < ENOUGH:
        return Merge(first, end)
    last = next((each for each in reversed(segments) if each.fit is not None), None)
    return Merge(first, end, True, last.fit if last is not None and last.fitted >= live else None)


def _kinds(segments: Sequence[SegmentEntry]) -> Iterator[tuple[int, int]]:
    """Neighbours of a kind: the number of the first, and that after the last."""
    first = 0
    for end in range(1, len(segments) + 1):
        if end == len(segments) or _kind(segments[end]) != _kind(segments[first]):
            yield first, end
            first = end


def _kind(segment: SegmentEntry) -> tuple[str | None, bool]:
    return segment.fit, bool(segment.codecs)


def _class(segment: SegmentEntry) -> int:
    """0 for fewer than `RUN` documents, 1 for fewer than `RUN` times as many, and so on."""
    size, most = 0, RUN
    while segment.live >= most:
        size, most = size + 1, most * RUN
    return size
