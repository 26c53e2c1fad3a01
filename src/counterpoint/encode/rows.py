"""`Row`: one tokenised text, and which of its positions make up which word. Needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

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
    plain = split_words(row.text)
    lists = [plain, *(names_in(row.text) if row.identifiers else ())]
    lists = [[word for word in words if row.cut is None or word.end <= row.cut] for words in lists]
    at = np.flatnonzero((row.kinds == Kind.TEXT) & (row.spans[:, 1] > row.spans[:, 0]))
    holders = np.stack([_holders(words, row.spans[at]) for words in lists], axis=1)
    if row.identifiers:
        signs = np.array([*map(is_punctuation, (word.text for word in plain)), False])
        holders[signs[holders[:, 0]], 1:] = -1
    starts = np.cumsum([0, *map(len, lists[:-1])])  # for each list, the number of words in all earlier ones
    holders[holders >= 0] += np.broadcast_to(starts, holders.shape)[holders >= 0]
    every = [word for words in lists for word in words]
    order = sorted(np.unique(holders[holders >= 0]), key=lambda i: (every[i].start, -every[i].end))
    kept = [every[i] for i in order]
    ids, rows, first = number_words(kept, settings)
    row_of = np.full(len(every) + 1, -1, dtype=np.int64)  # the last for -1
    row_of[order] = rows
    mapped = np.full((len(row), len(lists)), -1, dtype=np.int64)
    mapped[at] = row_of[holders]
    spans = np.array([(kept[index].start, kept[index].end) for index in first], dtype=np.int64)
    return ids, mapped, spans.reshape(-1, 2)


def _holders(words: Sequence[Span], spans: Int[np.ndarray, "t 2"]) -> Int[np.ndarray, " t"]:
    """Which of some words, in the order of the text, contains each token; -1 for none."""
    starts = np.array([word.start for word in words], dtype=np.int64)
    ends = np.array([word.end for word in words], dtype=np.int64)
    holder = np.searchsorted(starts, spans[:, 0], side="right") - 1
    inside = holder >= 0
    inside[inside] = spans[inside, 1] <= ends[holder[inside]]
    return np.where(inside, holder, -1)
