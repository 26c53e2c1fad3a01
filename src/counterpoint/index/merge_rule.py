"""Which segments a compaction merges.

Each commit that adds documents makes a segment, and deleted documents still use disk space. So after a
commit:

- `RUN` segments of one kind and one size class are merged, with all smaller ones after them. The classes hold
  segments of fewer than 8, 64, 512, ... live documents. A segment before a larger one counts in the larger
  one's class, so each class has fewer than `RUN` segments. A document is rewritten about once per class, and
  never more than `RUN` times per class;
- a segment with at least half of its documents deleted is rewritten without them.

Documents keep their order, so only neighbours are merged.

Added documents are *fresh*: sets of few bits store them in 8 bits, since few documents give no useful means.
Once `ENOUGH` fresh documents are merged, they are encoded: with the last fit if it was made on at least as
many documents, else with a fit of their own. Segments that share a fit are one kind; fresh ones are another.
Kinds are not mixed, nor are shards. So the number of fits is about the number of times that the index
doubled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from counterpoint.index.manifest import SegmentEntry

__all__ = ["ENOUGH", "RUN", "Merge", "all_due", "due", "last_fit"]

RUN = 8
ENOUGH = 1000  # fresh documents that are worth encoding in few bits


@final
@dataclass(frozen=True)
class Merge:
    """Neighbouring segments to merge.

    Attributes:
        first: number of the first segment.
        end: number after the last.
        codes: whether fresh documents are encoded in few bits.
        fit: name of the segment whose fit is used; None to fit anew.
    """

    first: int
    end: int
    codes: bool = False
    fit: str | None = None


def due(segments: Sequence[SegmentEntry]) -> Merge | None:
    """The next merge by the rule; None if none is due."""
    for first, end in _kinds(segments):
        classes = [_class(each) for each in segments[first:end]]
        classes = [max(classes[i:]) for i in range(len(classes))]  # never increasing
        for size in sorted(set(classes)):
            if classes.count(size) >= RUN:
                return _merge(segments, first + classes.index(size), end)
    for number, segment in enumerate(segments):
        if segment.live and 2 * segment.deleted >= segment.documents:
            return _merge(segments, number, number + 1)
    return None


def all_due(segments: Sequence[SegmentEntry]) -> Merge | None:
    """The next merge of a full compaction, which merges all neighbours of a kind and drops all deletes.

    Fresh documents are merged first, with the neighbours whose fit they will share, so that these are written
    once.
    """
    groups = list(_kinds(segments))
    merges = [_merge(segments, first, end) for first, end in groups]
    for number, found in enumerate(merges):
        if found.codes:
            neighbours = [groups[i] for i in (number - 1, number + 1) if 0 <= i < len(groups)]
            like = (found.fit, segments[found.first].shard)
            same = [each for each in neighbours if found.fit and _fit(segments[each[0]]) == like]
            edges = [edge for each in (*same, groups[number]) for edge in each]
            return replace(found, first=min(edges), end=max(edges))
    for found in merges:
        some = segments[found.first : found.end]
        if any(each.live for each in some) and (len(some) > 1 or some[0].deleted):
            return found
    return None


def last_fit(segments: Sequence[SegmentEntry]) -> SegmentEntry | None:
    """A segment with the last fit, by which fresh documents are encoded if they get none of their own."""
    return next((each for each in reversed(segments) if each.fit is not None), None)


def _merge(segments: Sequence[SegmentEntry], first: int, end: int) -> Merge:
    """The merge of some segments, with whether and how fresh documents are encoded."""
    live = sum(each.live for each in segments[first:end])
    if not segments[first].codecs or live < ENOUGH:
        return Merge(first, end)
    last = last_fit(segments)
    return Merge(first, end, True, last.fit if last is not None and last.fitted >= live else None)


def _kinds(segments: Sequence[SegmentEntry]) -> Iterator[tuple[int, int]]:
    first = 0
    for end in range(1, len(segments) + 1):
        if end == len(segments) or _kind(segments[end]) != _kind(segments[first]):
            yield first, end
            first = end


def _kind(segment: SegmentEntry) -> tuple[tuple[str | None, int | None], bool]:
    return _fit(segment), bool(segment.codecs)


def _fit(segment: SegmentEntry) -> tuple[str | None, int | None]:
    return segment.fit, segment.shard


def _class(segment: SegmentEntry) -> int:
    """0 for fewer than `RUN` documents, 1 for fewer than `RUN` times as many, and so on."""
    size, most = 0, RUN
    while segment.live >= most:
        size, most = size + 1, most * RUN
    return size
