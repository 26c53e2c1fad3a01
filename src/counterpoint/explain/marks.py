"""Marks of a document: the words that query words matched, with their largest contribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from counterpoint.explain.rows import Row
from counterpoint.types import Document, Span

__all__ = ["Mark", "Piece", "marks_of", "pieces_of"]


@dataclass(frozen=True)
class Mark:
    """A matched span of a document's full text, with its largest contribution for a query word in a part."""

    span: Span
    score: float
    part: str
    query: str


class Piece(NamedTuple):
    """A stretch of text, marked or not."""

    text: str
    mark: Mark | None


def marks_of(rows: Sequence[Row]) -> list[Mark]:
    """The marks of a document in the order of its text.

    Of overlapping marks, keep the one with the largest contribution, or a longer one around it if that
    contributed at least half as much.
    """
    best: dict[tuple[int, int], Mark] = {}
    for row in rows:
        for part, span in row.matches.items():
            mark = Mark(span, row.scores.get(part, 0.0), part, row.label)
            found = best.setdefault((span.start, span.end), mark)
            if mark.score > found.score:
                best[span.start, span.end] = mark
    kept: list[Mark] = []
    for mark in sorted(best.values(), key=lambda mark: (-mark.score, mark.span.start)):
        start, end = mark.span.start, mark.span.end
        taken = [one for one in kept if one.span.start < end and start < one.span.end]
        if all(start <= one.span.start and one.span.end <= end for one in taken) and all(
            2 * mark.score >= one.score for one in taken
        ):
            kept = [*(one for one in kept if one not in taken), mark]
    return sorted(kept, key=lambda mark: mark.span.start)


def pieces_of(document: Document, marks: Sequence[Mark], field: Literal["title", "text"]) -> list[Piece]:
    """The whole title or text of a document, split at its marks."""
    whole = document.title if field == "title" else document.text
    pieces, at = [], 0
    for mark in marks:
        place = document.place(mark.span)
        if place is None or place[0] != field or place[2] <= place[1]:
            continue
        pieces += [Piece(whole[at : place[1]], None), Piece(whole[place[1] : place[2]], mark)]
        at = place[2]
    return [piece for piece in (*pieces, Piece(whole[at:], None)) if piece.text]
