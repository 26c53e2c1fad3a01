"""`Transform`: a map from a set of vectors to a new one, learnt without labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Self

import numpy as np
from jaxtyping import Float
from torch import Tensor

from counterpoint.part import Part
from counterpoint.vectors import Vectors

__all__ = ["Rows", "Transform"]

Rows = Iterable[Float[np.ndarray, "n d"] | Float[Tensor, "n d"]]
"""Vectors in pieces, one below the other, without padding; read once, and never all held together."""


class Transform(Part, ABC):
    """A row-wise map of vectors that is fitted on some and applied to all."""

    @abstractmethod
    def fit(self, rows: Rows) -> Self:
        """Learn from vectors in one pass over them; what was learnt before is forgotten."""

    def out_dim(self, in_dim: int) -> int:
        """Components of a row that comes out, given those of one that goes in."""
        return in_dim

    @abstractmethod
    def forward(self, vectors: Vectors) -> Vectors:
        """Map every real row; padding comes out as zeros, whatever stood there.

        Raises:
            NotFittedError: before `fit`, where there is something to learn.
        """
