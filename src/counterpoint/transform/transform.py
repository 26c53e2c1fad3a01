"""`Transform`: a map from a set of vectors to a new one, learnt without labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Self

import numpy as np
from jaxtyping import Float
from torch import Tensor

from counterpoint.errors import NotFittedError, ShapeError
from counterpoint.part import Part
from counterpoint.vectors import Vectors

__all__ = ["FittedTransform", "Rows", "Transform"]

Rows = Iterable[Float[np.ndarray, "n d"] | Float[Tensor, "n d"]]
"""Batches of row vectors without padding. They are read once, and never all held together."""


class Transform(Part, ABC):
    """A row-wise map of vectors that is fitted to some and applied to all."""

    @abstractmethod
    def fit(self, rows: Rows) -> Self:
        """Learn from vectors in one pass. The result of an earlier fit is discarded."""

    def out_dim(self, in_dim: int) -> int:
        """Dimension of an output row, given that of an input row."""
        return in_dim

    @abstractmethod
    def forward(self, vectors: Vectors) -> Vectors:
        """Map every real row; a row of zeros stays zero. Padding becomes zeros, whatever its values.

        Raises:
            NotFittedError: before `fit`, if the transform learns.
        """


class FittedTransform(Transform):
    """A transform that learns from rows of `dim` components, and counts them in `count_`. Abstract."""

    dim: int
    count_: Tensor

    def check_fitted(self, dim: int | None = None) -> None:
        """Refuse to be used before `fit`, and vectors of another length.

        Raises:
            NotFittedError: nothing has been fitted.
            ShapeError: `dim` is not the number of components that it was fitted on.
        """
        if not self.is_set_up or not self.count_:
            raise NotFittedError(
                f"{type(self).__name__} has seen no vectors yet; call fit(rows) or load a fitted one"
            )
        if dim is not None and dim != self.dim:
            raise ShapeError(f"fitted on vectors of {self.dim} components, found {dim}")
