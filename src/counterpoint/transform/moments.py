"""Mean and covariance of a stream of vectors in one pass."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.errors import DataError, ShapeError

__all__ = ["Moments"]

PIECE = 8192
"""Rows converted to float64 at a time."""


class Moments:
    """Count, mean and scatter matrix, in float64.

    Pieces are merged as by Chan, Golub and LeVeque (1979): with δ the difference of two pieces' means,
    S = S_a + S_b + δδᵀ·n_a·n_b/(n_a + n_b). No sum of squares is kept, so vectors far from the origin lose
    nothing.
    """

    def __init__(self, dim: int):
        self.count = 0
        self.mean: Float[Tensor, " d"] = torch.zeros(dim, dtype=torch.float64)
        self.scatter: Float[Tensor, "d d"] = torch.zeros(dim, dim, dtype=torch.float64)

    def update(self, rows: Float[np.ndarray, "n d"] | Float[Tensor, "n d"]) -> None:
        """Add some vectors.

        Raises:
            ShapeError: they are not rows of the right length.
            DataError: a component is NaN or infinite.
        """
        found = torch.as_tensor(rows).detach().cpu()
        if found.dim() != 2 or found.shape[1] != len(self.mean):
            raise ShapeError(
                f"expected rows of {len(self.mean)} components, found shape {tuple(found.shape)}"
            )
        for piece in found.split(PIECE):
            self._merge(piece.double())

    def covariance(self) -> Float[Tensor, "d d"]:
        """The unbiased covariance, Σ(x − μ)(x − μ)ᵀ/(n − 1)."""
        return self.scatter / (self.count - 1)

    def _merge(self, rows: Float[Tensor, "n d"]) -> None:
        if not torch.isfinite(rows).all():
            raise DataError(
                "a vector has a component that is NaN or infinite; find the text that it came from"
            )
        if not len(rows):
            return
        mean = rows.mean(0)
        centred = rows - mean
        total = self.count + len(rows)
        delta = mean - self.mean
        self.scatter += centred.T @ centred + torch.outer(delta, delta) * (self.count * len(rows) / total)
        self.mean += delta * (len(rows) / total)
        self.count = total
