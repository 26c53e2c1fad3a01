"""Identifiers: names that programmers put together of several words, seen as one and as several."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

__all__ = ["DOTTED", "pieces_of"]

DOTTED = re.compile(r"(?<!\w)[^\W\d]\w*+(?:\.[^\W\d]\w*+)+")  # gives nothing back: linear in the text
"""Names that dots tie together: `datetime.date.today`."""

LETTERS = 3  # in a row: "sha256" is cut at its digits, "mp3", "p53" and "1980s" are not
LONGEST = 100  # letters; what is longer is data (base64, a genome), not a name


def pieces_of(word: str) -> tuple[tuple[int, int], ...]:
    """Where the pieces of a name begin and end; none for a word that is not put together.

    Names are cut at underscores, before a capital behind a small letter, before the last of several capitals
    that a small letter follows, and between letters and digits if they are cut elsewhere, too, or have three
    letters in a row.

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


@lru_cache(maxsize=2**16)
def _pieces(word: str) -> tuple[tuple[int, int], ...]:
    """The pieces of a word that has capitals inside, digits or underscores."""
    cuts = [0, *(at for at in range(1, len(word)) if _cut(word, at)), len(word)]
    runs = [(start, end) for start, end in pairwise(cuts) if word[start] != "_"]
    named = any(not word[end - 1].isdigit() and end - start >= LETTERS for start, end in runs)
    if not (named or _cut_at_case(word)):
        return ()
    return tuple(runs) if runs != [(0, len(word))] else ()


def _cut_at_case(word: str) -> bool:
    """Whether an underscore or a change of case cuts a word."""
    return "_" in word.strip("_") or any(_humps(word, at) for at in range(1, len(word)))


def _cut(word: str, at: int) -> bool:
    """Whether a piece begins, or an underscore stands, at a place behind the first."""
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
