"""`Gate`: the contextualised stop-word gate, which weighs a document's rows and drops some."""

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
"""What a gated set's name has behind it in the name of the gate's own values, which only training sees."""


@final
class Gate(Part):
    """r = ReLU(w · v + b) for every row v of a document, which becomes r · v; where r = 0 it is dropped.

    ColBERTer's contextualised stop words (Hofstätter et al. 2022, equations 9 and 10). The released code
    keeps a dropped row as zeros in training and leaves it out of an index, which scores differently; here it
    is left out of both.

    Args:
        threshold: rows with r at or below this are dropped. Train with 0; a higher one afterwards makes an
            index smaller without training again.
        in_dim: components of a row; filled in by the encoder.
    """

    def __init__(self, threshold: float = 0.0, in_dim: int | None = None):
        super().__init__()
        if not 0 <= threshold < math.inf:
            raise ConfigError(f"Gate: threshold must be from 0 up and finite, found {threshold}")
        self.threshold = threshold
        self.in_dim = in_dim

    def fill(self, in_dim: int) -> None:
        """Take over the number of components of a row, or check that it is the one declared."""
        if self.in_dim is None:
            self.in_dim = in_dim
        if self.in_dim != in_dim:
            raise ConfigError(f"Gate: in_dim is {self.in_dim}, but it is fed {in_dim} components")

    def _allocate(self) -> None:
        if self.in_dim is None:
            raise NotFittedError("Gate: in_dim is not known; give it, or put the gate into an encoder")
        self.linear_ = nn.Linear(self.in_dim, 1)
        nn.init.ones_(self.linear_.bias)  # every word open at first, as in the authors' code

    def weigh(self, rows: Float[Tensor, "*b d"]) -> Float[Tensor, "*b 1"]:
        """r, not negative."""
        return torch.relu(self.linear_(rows))

    def forward(self, vectors: Vectors) -> tuple[Vectors, Vectors]:
        """The weighted rows that are kept, and r of every row that was there.

        What stands at padded positions may be anything and stays out of both.
        """
        real = vectors.mask.unsqueeze(-1)
        rows = vectors.values.masked_fill(~real, 0)
        weights = self.weigh(rows).masked_fill(~real, 0)
        kept = vectors.mask & (weights[..., 0] > self.threshold)
        return Vectors(rows * weights, kept, vectors.ids), vectors.with_values(weights)
