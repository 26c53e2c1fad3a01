"""Identifiers: names composed of several words, such as checkIfEmpty, whole and in pieces."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from counterpoint.types import Span

__all__ = ["Names", "dotted_in", "names_in", "pieces_of", "spaced"]

DOTTED = re.compile(r"(?<!\w)[^\W\d]\w*+(?:\.[^\W\d]\w*+)+")  # possessive, so linear in the text
DOT = re.compile(r"\.[^\W\d]")  # in every dotted name; found in a thirtieth of the time
NAMED = re.compile(r"[^\W\d_]{3}")

RUN = re.compile(r"\w+")

LETTERS = 3  # in a row: "sha256" is split at its digits, "mp3", "p53" and "1980s" are not
LONGEST = 100  # letters; longer words are data (base64, a genome), not names


def pieces_of(word: str) -> tuple[tuple[int, int], ...]:
    """Start and end of each piece of a name; none for a word that is not composed.

    Names are split at underscores, before a capital that follows a small letter, and before the last of
    several capitals that a small letter follows. They are split between letters and digits if they are also
    split elsewhere, or have three letters in a row.

    Args:
        word: letters, digits and underscores.

    >>> [
    ...     "HTTP2Server_name"[start:end]
    ...     for start, end in pieces_of("HTTP2Server_name")
    ... ]
    ['HTTP', '2', 'Server', 'name']
    >>> pieces_of("server"), pieces_of("p53")
    ((), ())
    """
    if not word or len(word) > LONGEST:
        return ()
    if word.isalpha() and (word.islower() or word[1:].islower() or word.isupper()):
        return ()  # nearly every word of prose
    return _pieces(word)


class Names(NamedTuple):
    """The names of a text; each list is in the order of the text, without overlaps.

    Attributes:
        pieces: parts of a name with no underscore between them: check, If, Empty.
        joined: names with underscores: is_empty.
        dotted: names joined by dots: date.today.
    """

    pieces: list[Span]
    joined: list[Span]
    dotted: list[Span]


def names_in(text: str) -> Names:
    """Find all names in a text that are composed of several words.

    >>> found = names_in("os.path.is_empty and checkFile")
    >>> [[span.text for span in spans] for spans in found]
    [['check', 'File'], ['is_empty'], ['os.path.is_empty']]
    """
    pieces, joined = [], []
    for match in RUN.finditer(text):
        name, at = match[0], match.start()
        found = pieces_of(name)
        if found and "_" in name:
            joined.append(Span(name, at, match.end()))
        for start, end in found:
            if name[start - 1 : start].strip("_") or name[end : end + 1].strip("_"):
                pieces.append(Span(name[start:end], at + start, at + end))
    return Names(pieces, joined, dotted_in(text))


def dotted_in(text: str) -> list[Span]:
    """Find names joined by dots that have three letters in a row: not "e.g." nor "U.S.".

    >>> [span.text for span in dotted_in("e.g. datetime.date.today of the U.S.")]
    ['datetime.date.today']
    """
    if not DOT.search(text):
        return []
    return [Span(match[0], *match.span()) for match in DOTTED.finditer(text) if NAMED.search(match[0])]


def spaced(text: str, known: Callable[[str], bool]) -> tuple[str, Int[np.ndarray, " n"]]:
    """Insert a space before each capital inside a name that a small letter follows.

    Otherwise a tokenizer that lower-cases cannot see the words of checkIfEmpty. It does see underscores, dots
    and digits, and abbreviations such as miRNA are better kept whole.

    Args:
        text: any text.
        known: whether to keep a word whole (YouTube, if a vocabulary has it).

    Returns:
        The text, and the positions in the original text where a space was inserted, in order.

    >>> spaced("checkIfEmpty on YouTube", lambda word: word == "YouTube")[0]
    'check If Empty on YouTube'
    """
    places: list[int] = []
    for match in RUN.finditer(text):
        word, first, cuts = match[0], 0, list[int]()
        for start, end in pieces_of(word):
            if not word[start - 1 : start].strip("_"):
                first, cuts = start, []
            elif word[start].isupper() and word[start + 1 : start + 2].islower():
                cuts.append(start)
            if cuts and not word[end : end + 1].strip("_") and not known(word[first:end]):
                places += [match.start() + cut for cut in cuts]
    if not places:
        return text, np.zeros(0, np.int64)
    return " ".join(text[a:b] for a, b in pairwise([0, *places, len(text)])), np.array(places, np.int64)


@lru_cache(maxsize=2**16)
def _pieces(word: str) -> tuple[tuple[int, int], ...]:
    cuts = [0, *(at for at in range(1, len(word)) if _cut(word, at)), len(word)]
    runs = [(start, end) for start, end in pairwise(cuts) if word[start] != "_"]
    named = any(not word[end - 1].isdigit() and end - start >= LETTERS for start, end in runs)
    if not (named or "_" in word.strip("_") or any(_humps(word, at) for at in range(1, len(word)))):
        return ()
    return tuple(runs) if runs != [(0, len(word))] else ()


def _cut(word: str, at: int) -> bool:
    """Whether a piece or an underscore begins at a position after the first."""
    before, here = word[at - 1], word[at]
    if "_" in (before, here):
        return before != here
    return before.isdigit() != here.isdigit() or _humps(word, at)


def _humps(word: str, at: int) -> bool:
    """Whether a capital begins a piece: checkIf, HTTPServer; not the plural DNAs."""
    before, here, after = word[at - 1], word[at], word[at + 1 : at + 2]
    if not here.isupper():
        return False
    plural = after == "s" and not word[at + 2 : at + 3].islower()
    return before.islower() or (before.isupper() and after.islower() and not plural)
