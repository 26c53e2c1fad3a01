"""`Gate`: the contextualised stop-word gate, which weights a document's rows and drops some."""

from __future__ import annotations

import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from counterpoint.errors import ConfigError, NotFittedError
from counterpoint.part import Part
from counterpoint.vectors import Vectors

__all__ = ["BY_GATE", "Gate"]

BY_GATE = ".gate"
"""Suffix of a gated set's name for the values of its gate, which only training uses."""


@final
class Gate(Part):
    """Stop-word gate: r = ReLU(w · v + b) for every document row v, which becomes r · v; r = 0 drops it.

    ColBERTer's contextualised stop words (Hofstätter et al. 2022, equations 9 and 10). The released code
    keeps a dropped row as zeros in training but leaves it out of an index, which gives different scores. Here
    it is left out in both.

    Args:
        threshold: drop rows with r at or below this. Train with 0; a higher value afterwards makes a smaller
            index without new training.
        in_dim: components of a row; filled in by the encoder.
    """

    def __init__(self, threshold: float = 0.0, in_dim: int | None = None):
        super().__init__()
        if not 0 <= threshold < math.inf:
            raise ConfigError(f"Gate: threshold must be finite and at least 0, found {threshold}")
        self.threshold = threshold
        self.in_dim = in_dim

    def fill(self, in_dim: int) -> None:
        """Set the number of components of a row, or check that it is the declared one."""
        if self.in_dim is None:
            self.in_dim = in_dim
        if self.in_dim != in_dim:
            raise ConfigError(f"Gate: in_dim is {self.in_dim}, but the input has {in_dim} components")

    def _allocate(self) -> None:
        if self.in_dim is None:
            raise NotFittedError("Gate: in_dim is unknown; give it, or put the gate into an encoder")
        self.linear_ = nn.Linear(self.in_dim, 1)
        nn.init.ones_(self.linear_.bias)  # every word is kept at first, as in the authors' code

    def weigh(self, rows: Float[Tensor, "*b d"]) -> Float[Tensor, "*b 1"]:
        """Compute r, which is at least 0."""
        return torch.relu(self.linear_(rows))

    def forward(self, vectors: Vectors) -> tuple[Vectors, Vectors]:
        """The weighted rows that are kept, and r of every row.

        Padded positions may hold anything and are left out of both.
        """
        real = vectors.mask.unsqueeze(-1)
        rows = vectors.values.masked_fill(~real, 0)
        weights = self.weigh(rows).masked_fill(~real, 0)
        kept = vectors.mask & (weights[..., 0] > self.threshold)
        return Vectors(rows * weights, kept, vectors.ids), vectors.with_values(weights)
