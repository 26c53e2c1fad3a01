"""Heads with one row per token: its hidden state (ColBERT), or its word embedding alone (L of HIL)."""

from __future__ import annotations

import string
from abc import ABC
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from counterpoint.encode.choice import EachToken
from counterpoint.encode.heads import Head
from counterpoint.encode.layers import Layer
from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.encode.tokens import Kind, Tokens
from counterpoint.errors import NotFittedError
from counterpoint.types import Side
from counterpoint.vectors import Vectors

__all__ = ["PUNCTUATION", "PerToken", "Static", "TokenVectors"]

PUNCTUATION = tuple(string.punctuation)
"""The punctuation signs that ColBERT skips in documents."""


class PerToken(Head, ABC):
    """Abstract base: one row per position, including special, marker and mask positions.

    The ids of rows are vocabulary ids.

    Args:
        skip: vocabulary entries that get no row; `PUNCTUATION` for ColBERT's documents. Entries that the
            vocabulary lacks are ignored.
        skip_sides: sides on which they are skipped.
        projection: a layer applied to each row.
        normalise: scale to unit length.
        in_dim: components of an input row; filled in by the encoder.
    """

    skip_ids_: tuple[int, ...] | None = None

    def __init__(
        self,
        skip: Sequence[str] = (),
        skip_sides: Sequence[Side] = ("document",),
        projection: Layer | None = None,
        normalise: bool = False,
        in_dim: int | None = None,
    ):
        super().__init__(projection, normalise, in_dim)
        self.skip = skip
        self.skip_sides = skip_sides

    def bind(self, in_dim: int, tokenizer: Tokenizer) -> None:
        """Look up the ids of the entries to skip."""
        super().bind(in_dim, tokenizer)
        found = [tokenizer.find(token) for token in self.skip]
        self.skip_ids_ = tuple(number for number in found if number is not None)

    @property
    def choice(self) -> EachToken:
        """Every position that is not skipped.

        Raises:
            NotFittedError: the ids to skip are not known yet.
        """
        if self.skip and self.skip_ids_ is None:
            raise NotFittedError(
                f"{type(self).__name__}: the ids to skip are unknown until the head is part of an encoder"
            )
        return EachToken(self.skip_ids_ or (), tuple(self.skip_sides))

    def _kept(self, tokens: Tokens) -> Bool[Tensor, "b t"]:
        kept, choice = tokens.kinds != Kind.PADDING, self.choice
        if not choice.skip or tokens.side not in choice.sides:
            return kept
        return kept & ~torch.isin(tokens.ids, torch.tensor(choice.skip, device=tokens.ids.device))


@final
class TokenVectors(PerToken):
    """The hidden state of each position (ColBERT).

    Args: as `PerToken`.
    """

    def forward(self, hidden: Float[Tensor, "b t h"], tokens: Tokens) -> Vectors:
        """Make one row per kept position."""
        return Vectors(self.finish(hidden), self._kept(tokens), tokens.ids)


@final
class Static(PerToken):
    """The word embedding of each position's token, without position, segment, layer norm or context.

    L of Hybrid Isotropy Learning (Kim et al. 2024, section 3.3). Every occurrence of a word-piece has the
    same vector, so an index needs only one table (`Model.table`) and the ids. The embeddings are the
    backbone's own, trained and saved with it. An encoder whose heads are all static never runs the backbone's
    layers.

    Args: as `PerToken`.
    """

    static = True

    def forward(self, hidden: Float[Tensor, "b t h"], tokens: Tokens) -> Vectors:
        """Make one row per kept position; `hidden` are word embeddings."""
        return Vectors(self.finish(hidden), self._kept(tokens), tokens.ids)
