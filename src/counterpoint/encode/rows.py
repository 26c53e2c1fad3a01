"""`Row`: one tokenised text, and which of its positions make up which word. Needs no torch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import accumulate

import numpy as np
from jaxtyping import Bool, Int

from counterpoint.encode.words import WordSettings, is_punctuation, number_words, split_words
from counterpoint.identifiers import names_in
from counterpoint.types import Span

__all__ = ["Kind", "Row", "map_words"]


Mapped = tuple[Int[np.ndarray, " w"], Int[np.ndarray, "t n"], Int[np.ndarray, "w 2"]]


class Kind(IntEnum):
    """Kind of token at a position."""

    PADDING = 0
    TEXT = 1
    SPECIAL = 2
    """[CLS], [SEP] and similar."""
    MARKER = 3
    """ColBERT's [Q] or [D]."""
    PROMPT = 4
    EXPANSION = 5
    """ColBERT's [MASK] padding of queries, which is scored."""


TEXT = int(Kind.TEXT)


@dataclass(frozen=True)
class Row:
    """One tokenised text before padding; its arrays have the same length.

    Attributes:
        text: the text, without its prompt.
        ids: vocabulary ids.
        kinds: values of `Kind`.
        attended: True where other positions may attend.
        spans: (t, 2), character offsets of a token in `text`; (0, 0) if it represents no text.
        cut: offset in `text` of the first token that was truncated; None if none was.
        identifiers: names of several words, such as `is_empty`, are words, and so are their pieces.
    """

    text: str
    ids: Int[np.ndarray, " t"]
    kinds: Int[np.ndarray, " t"]
    attended: Bool[np.ndarray, " t"]
    spans: Int[np.ndarray, "t 2"]
    cut: int | None = None
    identifiers: bool = False
    _mapped: dict[WordSettings, Mapped] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.ids)

    def masked(self, at: Int[np.ndarray, " n"], mask_id: int) -> Row:
        """Copy the row with mask tokens at some positions, which then represent no text."""
        ids, spans = self.ids.copy(), self.spans.copy()
        ids[at], spans[at] = mask_id, 0
        return replace(self, ids=ids, spans=spans)

    def without(self, at: Int[np.ndarray, " n"]) -> Row:
        """Copy the row without some positions."""
        arrays = {name: getattr(self, name) for name in ("ids", "kinds", "attended", "spans")}
        return replace(self, **{name: np.delete(array, at, axis=0) for name, array in arrays.items()})


def map_words(row: Row, settings: WordSettings) -> Mapped:
    """Word ids of one text, the words of each position (-1 for none), and each word's first occurrence.

    A token belongs to the words that contain it; punctuation inside a name is not part of the name. A word is
    left out if truncation cut it or the tokenizer kept none of its characters: no vector would represent it.
    The arrays are computed once per row and must not be written to.
    """
    if settings not in row._mapped:
        row._mapped[settings] = _map(row, settings)
    return row._mapped[settings]


def _map(row: Row, settings: WordSettings) -> Mapped:
    # Plain lists: a query has twenty positions, for which one call of numpy costs more than a loop.
    lists = [split_words(row.text), *(names_in(row.text) if row.identifiers else ())]
    if row.cut is not None:
        lists = [[word for word in words if word.end <= row.cut] for words in lists]
    kinds, spans = row.kinds.tolist(), row.spans.tolist()
    at = [i for i, (start, end) in enumerate(spans) if kinds[i] == TEXT and end > start]
    holders = _holders(lists, [spans[i] for i in at])
    every = [word for words in lists for word in words]
    used = sorted({i for column in holders for i in column if i >= 0})
    used.sort(key=lambda i: (every[i].start, -every[i].end))
    kept = [every[i] for i in used]
    ids, rows, first = number_words(kept, settings)
    row_of = {-1: -1, **dict(zip(used, rows.tolist(), strict=True))}
    mapped = np.full((len(row), len(lists)), -1, dtype=np.int64)
    mapped[at] = np.array([[row_of[i] for i in column] for column in holders], dtype=np.int64).T
    places = [(kept[i].start, kept[i].end) for i in first]
    return ids, mapped, np.array(places, dtype=np.int64).reshape(-1, 2)


def _holders(lists: Sequence[Sequence[Span]], spans: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each list of words, which word contains each token, counted over all lists; -1 for none.

    The lists after the first have names, of which punctuation is no part.
    """
    columns = [_holder(words, spans) for words in lists]
    if any(lists[1:]):
        part = [i < 0 or not is_punctuation(lists[0][i].text) for i in columns[0]]
        names = ([i if inside else -1 for i, inside in zip(each, part, strict=True)] for each in columns[1:])
        columns = [columns[0], *names]
    before = accumulate(map(len, lists), initial=0)
    return [[i if i < 0 else i + b for i in column] for column, b in zip(columns, before, strict=False)]


def _holder(words: Sequence[Span], spans: Sequence[Sequence[int]]) -> list[int]:
    """Which of some words, in the order of the text, contains each token; -1 for none."""
    starts = [word.start for word in words]
    found = [bisect_right(starts, start) - 1 for start, _ in spans]
    return [i if i >= 0 and end <= words[i].end else -1 for i, (_, end) in zip(found, spans, strict=True)]
