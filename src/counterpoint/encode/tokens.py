"""`Tokens`: a padded batch of tokenised texts, with everything that heads need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from counterpoint.encode.rows import Kind, Row, map_words
from counterpoint.encode.words import WordSettings
from counterpoint.identifiers import Names
from counterpoint.types import Side

__all__ = ["Kind", "Row", "Tokens", "WordMap"]


@dataclass(frozen=True)
class WordMap:
    """Which positions make up which word.

    Attributes:
        ids: word ids, 0 where there is no word.
        rows: for each position, the rows of its words in `ids`, -1 for none. With identifiers, a position
            belongs to its word, its piece of a name, and the joined and the dotted name that contain it.
        spans: for each word, its first occurrence in the text.
    """

    ids: Int[Tensor, "b w"]
    rows: Int[Tensor, "b t n"]
    spans: Int[Tensor, "b w 2"]

    @staticmethod
    def of(rows: Sequence[Row], width: int, settings: WordSettings, *, fixed: bool = False) -> WordMap:
        """Map the positions of each row, padded to `width`, to the distinct words of its text.

        If `fixed`, the shape has room for the largest possible number of words.
        """
        found = [map_words(row, settings) for row in rows]
        named = any(row.identifiers for row in rows)
        levels = 1 + len(Names._fields) if named else 1
        positions = torch.full((len(rows), width, levels), -1, dtype=torch.int64)
        for index, (_, mapped, _) in enumerate(found):
            positions[index, : len(mapped), : mapped.shape[1]] = torch.from_numpy(mapped)
        # Words of one list share no position, and each joined or dotted name has at least three.
        room = (3 * width if named else width) if fixed else None
        ids = _padded([ids for ids, _, _ in found], width=room)
        spans = _padded([spans for _, _, spans in found], width=room)
        return WordMap(ids, positions, spans.reshape(*ids.shape, 2))

    def first(self, count: int) -> WordMap:
        """The map of the first `count` texts."""
        return WordMap(self.ids[:count], self.rows[:count], self.spans[:count])

    def to(self, device: torch.device | str) -> WordMap:
        """Copy the map to another device."""
        return WordMap(self.ids.to(device), self.rows.to(device), self.spans.to(device))


@dataclass(frozen=True)
class Tokens:
    """A batch of tokenised texts, padded on the right.

    Attributes:
        ids: vocabulary ids.
        attention: True where the backbone may attend.
        kinds: values of `Kind`.
        spans: character offsets into `texts`; (0, 0) where a position represents no text.
        texts: the texts, without prompts.
        side: side of the texts.
        words: word maps by their settings, one for each that some head needs.
    """

    ids: Int[Tensor, "b t"]
    attention: Bool[Tensor, "b t"]
    kinds: Int[Tensor, "b t"]
    spans: Int[Tensor, "b t 2"]
    texts: tuple[str, ...]
    side: Side
    words: Mapping[WordSettings, WordMap] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    @staticmethod
    def pad(
        rows: Sequence[Row],
        side: Side,
        *,
        pad_id: int,
        words: Sequence[WordSettings] = (),
        width: int | None = None,
    ) -> Tokens:
        """Pad and stack rows; build a word map for each of `words`.

        With `width`, every shape follows from it and the number of rows. Otherwise the batch is as wide as
        its longest row.
        """
        fixed = width is not None
        wide = max((len(row) for row in rows), default=0) if width is None else width
        return Tokens(
            ids=_padded([row.ids for row in rows], pad_id, wide),
            attention=_padded([row.attended for row in rows], width=wide).bool(),
            kinds=_padded([row.kinds for row in rows], Kind.PADDING, wide),
            spans=_padded([row.spans for row in rows], width=wide).reshape(len(rows), wide, 2),
            texts=tuple(row.text for row in rows),
            side=side,
            words={settings: WordMap.of(rows, wide, settings, fixed=fixed) for settings in words},
        )

    def first(self, count: int) -> Tokens:
        """The first `count` texts, at the same width."""
        kept = {name: getattr(self, name)[:count] for name in ("ids", "attention", "kinds", "spans", "texts")}
        return replace(self, **kept, words={key: words.first(count) for key, words in self.words.items()})

    def to(self, device: torch.device | str) -> Tokens:
        """Copy the tokens to another device."""
        moved = {name: getattr(self, name).to(device) for name in ("ids", "attention", "kinds", "spans")}
        return replace(self, **moved, words={key: words.to(device) for key, words in self.words.items()})


def _padded(arrays: Sequence[np.ndarray], value: int = 0, width: int | None = None) -> Tensor:
    if not arrays:
        return torch.zeros(0, 0, dtype=torch.int64)
    rows = [torch.from_numpy(array) for array in arrays]
    padded = pad_sequence(rows, batch_first=True, padding_value=value)
    missing = 0 if width is None else width - padded.shape[1]
    if not missing:
        return padded
    return torch.cat([padded, padded.new_full((len(rows), missing, *padded.shape[2:]), value)], dim=1)
