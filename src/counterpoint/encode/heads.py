"""Heads: each makes one named vector set from a backbone's output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import normalize

from counterpoint.encode.choice import Choice, EachWord, WholeText
from counterpoint.encode.layers import Layer
from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.encode.tokens import Tokens
from counterpoint.encode.words import Stem, WordSettings
from counterpoint.errors import ConfigError, NotFittedError
from counterpoint.part import Part
from counterpoint.transform import Transform
from counterpoint.vectors import Vectors

__all__ = ["Cls", "Head", "Mean", "WholeWords"]


class Head(Part, ABC):
    """Abstract base of heads: a choice of rows, an optional projection, and optional unit length."""

    pooled: bool = False
    """True for exactly one row per text; otherwise the text decides how many, and each has an id."""
    static: bool = False
    """True if a row depends on its vocabulary id alone. The head is then fed the backbone's word embeddings
    instead of its hidden states."""

    def __init__(self, projection: Layer | None = None, normalise: bool = False, in_dim: int | None = None):
        super().__init__()
        self.projection = projection
        self.normalise = normalise
        self.in_dim = in_dim

    @abstractmethod
    def forward(self, hidden: Float[Tensor, "b t h"], tokens: Tokens) -> Vectors:
        """Make the vectors from the backbone's last hidden states, or from word embeddings if `static`."""

    @property
    def choice(self) -> Choice:
        """The rule that chooses the rows of a text, if the text alone decides it."""
        return WholeText()

    @property
    def word_settings(self) -> WordSettings | None:
        """Settings of the word map that this head needs in `Tokens.words`."""
        return None

    @property
    def state_dim(self) -> int:
        """Number of components of a hidden state, or of a word embedding if `static`.

        Raises:
            NotFittedError: it is unknown until the head is part of an encoder.
        """
        if self.in_dim is None:
            raise NotFittedError(
                f"{type(self).__name__}: in_dim is unknown until the head is part of an encoder"
            )
        return self.in_dim

    @property
    def dim(self) -> int:
        """Number of components of a vector."""
        return self.state_dim if self.projection is None else self.projection.out_dim

    def bind(self, in_dim: int, tokenizer: Tokenizer) -> None:
        """Fill in what the backbone decides; the encoder calls this before `setup`."""
        if self.in_dim is None:
            self.in_dim = in_dim
        if self.in_dim != in_dim:
            raise ConfigError(
                f"{type(self).__name__}: in_dim is {self.in_dim}, but the backbone's "
                f"{'word embeddings' if self.static else 'states'} have {in_dim}"
            )

    def setup(self) -> Head:
        """Allocate the projection once its input size is known."""
        if self.projection is not None and self.in_dim is not None:
            self.projection.fill(self.in_dim)
        super().setup()
        return self

    def finish(self, values: Float[Tensor, "*b h"]) -> Float[Tensor, "*b d"]:
        """Apply the projection and unit length, where they are set."""
        if self.projection is not None:
            values = self.projection(values)
        return normalize(values, dim=-1) if self.normalise else values


@final
class Cls(Head):
    """The hidden state of the first position.

    Args:
        projection: a layer applied after it.
        normalise: scale to unit length.
        in_dim: components of a hidden state; filled in by the encoder.
    """

    pooled = True

    def forward(self, hidden: Float[Tensor, "b t h"], tokens: Tokens) -> Vectors:
        """Make one row per text."""
        return _pooled(self.finish(hidden[:, :1]))


@final
class Mean(Head):
    """The mean over all attended positions, special tokens included, as in sentence-transformers.

    Args:
        projection: a layer applied after the mean.
        normalise: scale to unit length.
        in_dim: components of a hidden state; filled in by the encoder.
        tokenwise: transforms of every token's projected state, applied before the mean (Isotropic DR, section
            4.1). Transforms after the mean are the model's `transforms`.
    """

    pooled = True
    waiting: bool = False
    """True until `tokenwise` is fitted; it is skipped until then."""

    def __init__(
        self,
        projection: Layer | None = None,
        normalise: bool = False,
        in_dim: int | None = None,
        tokenwise: Sequence[Transform] = (),
    ):
        super().__init__(projection, normalise, in_dim)
        self.tokenwise = nn.ModuleList(tokenwise)

    @property
    def dim(self) -> int:
        """Number of components of a vector, after all transforms."""
        found = super().dim
        for step in self._steps():
            found = step.out_dim(found)
        return found

    def forward(self, hidden: Float[Tensor, "b t h"], tokens: Tokens) -> Vectors:
        """Make one row per text."""
        weights = tokens.attention.to(hidden.dtype)
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1)
        if not self._steps():
            return _pooled(self.finish(_weighted_sum(weights, hidden)))
        values = hidden if self.projection is None else self.projection(hidden)
        mapped = Vectors(values, tokens.attention.bool())
        for step in self._steps():
            mapped = step(mapped)
        mean = _weighted_sum(weights.to(values.dtype), mapped.values)
        return _pooled(normalize(mean, dim=-1) if self.normalise else mean)

    def _steps(self) -> list[Transform]:
        return [] if self.waiting else [step for step in self.tokenwise if isinstance(step, Transform)]


@final
class WholeWords(Head):
    """One row per distinct word: the mean of the vectors of all its word-pieces, over all its occurrences.

    ColBERTer's BOW² (section 3.2 of the paper). Ids are word ids, and rows are in order of first occurrence.
    Special tokens belong to no word. Words cut by truncation have no row, and an empty text has no rows. A
    token that spans several words (byte-level vocabularies have some: "...") belongs to none of them.

    Args:
        stem: normal form under which words count as the same.
        hash_bits: number of low bits of the hash that make a word's id.
        drop_punctuation: leave out punctuation signs.
        projection: a layer applied to the mean. If it is linear, this equals the mean of projected vectors.
        normalise: scale to unit length.
        in_dim: components of a hidden state; filled in by the encoder.
    """

    def __init__(
        self,
        stem: Stem = "snowball",
        hash_bits: int = 32,
        drop_punctuation: bool = False,
        projection: Layer | None = None,
        normalise: bool = False,
        in_dim: int | None = None,
    ):
        super().__init__(projection, normalise, in_dim)
        self.stem: Stem = stem
        self.hash_bits = hash_bits
        self.drop_punctuation = drop_punctuation

    @property
    def word_settings(self) -> WordSettings:
        """Settings of the word map that this head needs."""
        return WordSettings(self.stem, self.hash_bits, self.drop_punctuation)

    def forward(self, hidden: Float[Tensor, "b t h"], tokens: Tokens) -> Vectors:
        """Make one row per distinct word."""
        words = tokens.words[self.word_settings]
        means = mean_by_row(hidden, words.rows, words.ids.shape[1])
        return Vectors(self.finish(means), words.ids > 0, words.ids)

    @property
    def choice(self) -> EachWord:
        """The first occurrence of each distinct word."""
        return EachWord(self.word_settings)


def _weighted_sum(weights: Float[Tensor, "b t"], values: Float[Tensor, "b t d"]) -> Float[Tensor, "b 1 d"]:
    """Compute Σ weight·vector of each text.

    On a CPU, this uses float64. The order of the sum depends on batch size and padding, and rounding to
    float32 removes the difference.
    """
    precise = torch.float64 if values.device.type == "cpu" else values.dtype
    return (weights.unsqueeze(1).to(precise) @ values.to(precise)).to(values.dtype)


def mean_by_row(
    values: Float[Tensor, "b t d"], rows: Int[Tensor, "b t n"], count: int
) -> Float[Tensor, "b w d"]:
    """Mean of the vectors that share a row number, for rows 0 to `count`; number -1 means no row.

    A position has one number for each word that it may be a piece of.

    The sum is a product with a 0/1 matrix. Scattered adds would run in a different order each time on a GPU.
    """
    numbers = torch.arange(count, device=rows.device)[:, None]
    member = torch.stack([one.unsqueeze(1) == numbers for one in rows.unbind(-1)]).any(0)
    weights = member.to(values.dtype)
    return (weights / weights.sum(2, keepdim=True).clamp(min=1)) @ values


def _pooled(values: Float[Tensor, "b 1 d"]) -> Vectors:
    return Vectors(values, torch.ones(values.shape[:2], dtype=torch.bool, device=values.device))
