"""Snippets: the passages of a text with the strongest matches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from counterpoint.explain.marks import Mark
from counterpoint.identifiers import pieces_of
from counterpoint.types import Document

__all__ = ["Shown", "snippet"]

BEFORE = 40  # characters before the first match of a stretch
MOST = 0.7  # share of the matches' scores for which one stretch is enough
WEAK = 0.25  # share of the strongest match below which a match is not marked


class Shown(NamedTuple):
    """A piece of a snippet, on one line, and whether it is a matched word."""

    text: str
    matched: bool


def snippet(document: Document, marks: Sequence[Mark], room: int) -> list[Shown]:
    """About `room` characters of the text around the strongest matches; two stretches if one has few.

    Every occurrence of a matched word is marked. A first line that repeats the title is left out.
    """
    text = document.text
    begin = _after_title(document)
    strongest = max((mark.score for mark in marks), default=0.0)
    strong = [mark for mark in marks if mark.score > 0 and mark.score >= WEAK * strongest]
    words = {mark.span.text for mark in strong if mark.span.text.strip()}
    places = [
        (place[1], mark.score)
        for mark in strong
        if (place := document.place(mark.span)) is not None and place[0] == "text" and place[1] >= begin
    ]
    shown: list[Shown] = []
    stretches = _stretches(text, begin, places, room)
    for start, end in stretches:
        shown += [Shown(" … ", False)] if start > begin else []
        shown += _pieces(text[start:end], words)
    return _joined(shown + ([Shown(" …", False)] if stretches[-1][1] < len(text) else []))


def _after_title(document: Document) -> int:
    """Start of the text without a first line that repeats the title."""
    line = re.match(r"\s*([^\n]+)\n", document.text)
    if line is None or not document.title:
        return 0
    bare = re.sub(r"^[\W_]+|[\W_]+$", "", line[1])
    return line.end() if bare.casefold() == document.title.strip().casefold() else 0


def _stretches(
    text: str, begin: int, places: Sequence[tuple[int, float]], room: int
) -> list[tuple[int, int]]:
    if len(text) - begin <= room:
        return [(begin, len(text))]
    first = _best(text, begin, places, room)
    inside = sum(score for at, score in places if first[0] <= at < first[1])
    if inside >= MOST * sum(score for _, score in places):
        return [first]
    first = _best(text, begin, places, room // 2)
    second = _best(text, begin, [p for p in places if not first[0] <= p[0] < first[1]], room // 2)
    early, late = sorted((first, second))
    return [(early[0], late[1])] if late[0] <= early[1] else [early, late]


def _best(text: str, begin: int, places: Sequence[tuple[int, float]], room: int) -> tuple[int, int]:
    """The stretch of at most `room` characters with the highest score; the first one without matches."""
    starts = [max(begin, at - BEFORE) for at, _ in places] or [begin]
    start = max(starts, key=lambda s: sum(score for at, score in places if s <= at < s + room))
    if start > begin:
        start = max(begin, text.rfind(" ", begin, start) + 1)
    end = start + room
    if end < len(text):
        space = text.rfind(" ", start + room // 2, end)
        end = space if space > start else end
    return start, min(end, len(text))


def _pieces(text: str, words: set[str]) -> list[Shown]:
    if not words:
        return [Shown(text, False)]
    longest_first = sorted(map(re.escape, words), key=len, reverse=True)
    inside = _inside_words(text)
    parts, at = [], 0
    for match in re.finditer("|".join(longest_first), text, flags=re.IGNORECASE):
        if inside.isdisjoint(match.span()):
            parts += [Shown(text[at : match.start()], False), Shown(match[0], True)]
            at = match.end()
    return [piece for piece in (*parts, Shown(text[at:], False)) if piece.text]


def _inside_words(text: str) -> set[int]:
    """Positions inside words; not their ends, nor where an identifier of several words can be split."""
    inside: set[int] = set()
    for match in re.finditer(r"\w+", text):
        ends = {match.start() + end for piece in pieces_of(match[0]) for end in piece}
        inside |= set(range(match.start() + 1, match.end())) - ends
    return inside


def _joined(shown: Sequence[Shown]) -> list[Shown]:
    """Put pieces on one line: white space becomes one space, and is removed at the ends."""
    lines = [Shown(re.sub(r"\s+", " ", piece.text), piece.matched) for piece in shown]
    if lines:
        lines[0] = lines[0]._replace(text=lines[0].text.lstrip())
        lines[-1] = lines[-1]._replace(text=lines[-1].text.rstrip())
    return [piece for piece in lines if piece.text]
