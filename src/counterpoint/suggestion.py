"""The hint in a message about an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["suggestion"]


def suggestion(name: object, known: Iterable[str], otherwise: str = "", end: str = "") -> str:
    """Ask whether the most similar known name was meant, with `end` after it; `otherwise` if none is similar.

    >>> suggestion("bm52", ["bm25", "dense"])
    "did you mean 'bm25'?"
    >>> suggestion("other", ["bm25", "dense"], "it has bm25, dense")
    'it has bm25, dense'
    """
    close = get_close_matches(str(name), list(known), n=1)
    return f"did you mean {close[0]!r}?{end}" if close else otherwise
