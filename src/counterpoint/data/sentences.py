"""Find sentence boundaries by rules, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Literal, NamedTuple

__all__ = ["UNSPACED_LETTER", "Begins", "Sentence", "count_words", "sentences", "word_starts"]

Begins = Literal["sentence", "paragraph", "section"]

# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Chinese characters.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
LONGEST_WORD = 20
UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]{{1,{LONGEST_WORD}}}")

CLOSERS = "\"'”’»)\\]"
# Each alternative begins at a character that cannot continue a match of its own kind, so a file of ten
# million dots takes linear time.
BOUNDARY = re.compile(
    rf"""
    (?P<paragraph> \n [^\S\n]* \n \s*+ )
  | (?P<item>      \n (?= [^\S\n]* (?: [-*•] | \d{{1,3}}[.)] ) [ \t] ) )     # a list item begins a sentence
  | (?P<wide>      [。！？｡।॥۔؟።៕។။၊]++ [」』”’）》〉]*+ )                   # no space need follow
  | (?P<point>     (?<![.!?…]) [.!?…]++ [{CLOSERS}]*+ (?= \s ) )
  | (?P<thai>      (?<=[\u0e00-\u0eff]) [ ]++ (?=[\u0e00-\u0eff]) )          # Thai and Lao end with a space
    """,
    re.VERBOSE,
)

BEFORE_A_NAME = frozenset(
    "mr mrs ms dr prof st sr jr gen col capt lt sgt rev hon pres gov sen rep vs cf e.g i.e viz al resp "
    "approx esp incl z.b d.h bzw".split()
)
BEFORE_A_NUMBER = frozenset(
    "no nos vol vols p pp fig figs eq eqs sec sect ch chap art nr ca c tab thm".split()
)
LAST_WORD = re.compile(r"\S{1,24}$")
INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # J. Smith, the U.S. Army


class Sentence(NamedTuple):
    """A piece of text to keep together: its place, its length, and what begins with it."""

    start: int
    end: int
    words: int
    begins: Begins


def count_words(text: str, start: int = 0, end: int | None = None) -> int:
    """Count words for the length of a passage.

    A run of letters counts as one word per 20 characters begun, so that a long address or a table of digits
    is not one word. Scripts without spaces count by the character, as in most word-piece vocabularies.
    """
    return len(WORD.findall(text, start, len(text) if end is None else end))


def word_starts(text: str, start: int, end: int) -> list[int]:
    """Start positions of the words that `count_words` counts."""
    return [match.start() for match in WORD.finditer(text, start, end)]


def sentences(text: str, headings: tuple[int, ...] = ()) -> Iterator[Sentence]:
    """Cut a text into sentences; together they contain everything except white space, each character once.

    `headings` are rising positions at which a section begins; a sentence always begins there.
    """
    begins: Begins = "paragraph"
    waiting, at = list(reversed(headings)), 0
    for end, kind in chain(_ends(text), [(len(text), "sentence")]):
        while waiting and waiting[-1] <= end:
            cut = waiting.pop()
            yield from _trimmed(text, at, cut, begins)
            at, begins = max(at, cut), "section"
        if text[at:end].strip():
            yield from _trimmed(text, at, end, begins)
            begins = "sentence"
        if kind == "paragraph" and begins == "sentence":
            begins = "paragraph"
        at = end


def _trimmed(text: str, start: int, end: int, begins: Begins) -> Iterator[Sentence]:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    if start < end:
        yield Sentence(start, end, count_words(text, start, end), begins)


def _ends(text: str) -> Iterator[tuple[int, str]]:
    for match in BOUNDARY.finditer(text):
        kind = match.lastgroup or ""
        if kind != "point" or _ends_sentence(text, match):
            yield match.end(), kind


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    following = text[match.end() : match.end() + 24].lstrip()[:1]
    if following.islower():
        return False
    if match[0] != ".":
        return True
    if (found := LAST_WORD.search(text, max(0, match.start() - 24), match.start())) is None:
        return True
    bare = found[0].lstrip("([\"'“‘«")
    word = bare.lower()
    if word in BEFORE_A_NAME or (word in BEFORE_A_NUMBER and following.isdecimal()):
        return False
    if bare[-1:].isupper() and INITIALS.fullmatch(bare):
        return False
    line = text.rfind("\n", max(0, found.start() - 24), found.start()) + 1
    return not word.isdecimal() or len(word) > 3 or bool(text[line : found.start()].strip())  # "1. Install"
