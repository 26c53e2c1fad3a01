"""The rows of a tokenised text in a vector set, and the span of each row.

The text alone decides them, so a search or an explanation needs neither the model nor torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Int

from counterpoint.encode.rows import Row, map_words
from counterpoint.encode.words import WordSettings
from counterpoint.errors import ConfigError
from counterpoint.types import Side, Span

__all__ = ["Choice", "EachToken", "EachWord", "WholeText"]


class Choice(ABC):
    """Abstract base: the rows of one vector set."""

    @abstractmethod
    def ids(self, row: Row, side: Side) -> Int[np.ndarray, " n"]:
        """The id of each row of the set.

        Raises:
            ConfigError: the set has one row per text, and that row represents no word.
        """

    @abstractmethod
    def spans(self, row: Row, side: Side, name_of: Callable[[int], str]) -> list[Span]:
        """The span of each row of the set.

        A row that represents no part of the text is named by `name_of`, which maps a vocabulary id to its
        entry; its span is empty, at 0.
        """


@final
@dataclass(frozen=True)
class WholeText(Choice):
    """One row per text."""

    def ids(self, row: Row, side: Side) -> Int[np.ndarray, " n"]:
        """Refuse with a ConfigError: a pooled row has no id."""
        raise ConfigError("the set has one vector per text, so its rows have no ids")

    def spans(self, row: Row, side: Side, name_of: Callable[[int], str]) -> list[Span]:
        """The whole text."""
        return [Span(row.text, 0, len(row.text))]


@final
@dataclass(frozen=True)
class EachWord(Choice):
    """One row per distinct word.

    Attributes:
        words: which words count as the same.
    """

    words: WordSettings

    def ids(self, row: Row, side: Side) -> Int[np.ndarray, " n"]:
        """The id of each distinct word."""
        return map_words(row, self.words)[0]

    def spans(self, row: Row, side: Side, name_of: Callable[[int], str]) -> list[Span]:
        """The first occurrence of each word."""
        places = map_words(row, self.words)[2].tolist()
        return [Span(row.text[start:end], start, end) for start, end in places]


@final
@dataclass(frozen=True)
class EachToken(Choice):
    """One row per position, special, marker and mask positions included.

    Attributes:
        skip: vocabulary ids that get no row.
        sides: sides on which they are skipped.
    """

    skip: tuple[int, ...] = ()
    sides: tuple[Side, ...] = ("document",)

    def kept(self, row: Row, side: Side) -> Bool[np.ndarray, " t"]:
        """Which positions have a row."""
        if not self.skip or side not in self.sides:
            return np.ones(len(row), bool)
        return ~np.isin(row.ids, self.skip)

    def ids(self, row: Row, side: Side) -> Int[np.ndarray, " n"]:
        """The vocabulary id of each kept token."""
        return row.ids[self.kept(row, side)]

    def spans(self, row: Row, side: Side, name_of: Callable[[int], str]) -> list[Span]:
        """The span of each kept token; a token without characters is given by its name."""
        kept = self.kept(row, side)
        return [
            Span(row.text[start:end] if end > start else name_of(number), start, end)
            for number, (start, end) in zip(row.ids[kept].tolist(), row.spans[kept].tolist(), strict=True)
        ]
