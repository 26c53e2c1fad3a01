"""Mean and covariance of a stream of vectors in one pass."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.errors import DataError, ShapeError

__all__ = ["Moments"]

PIECE = 2**18
"""Components converted to float64 at a time, few enough to stay in the cache during all operations."""


class Moments:
    """Count, mean and scatter matrix, in float64.

    Let μ be the mean of the n rows so far, and y = x − μ those of a new batch of m. The scatter about the new
    mean is S + Σyyᵀ − ssᵀ/(n + m), s = Σy (Chan, Golub and LeVeque 1979, with the batch taken about the old
    mean: one matrix product and one pass over the rows). No sum of squares about the origin is stored, so
    vectors far from it lose no precision.
    """

    def __init__(self, dim: int):
        self.count = 0
        self.mean: Float[Tensor, " d"] = torch.zeros(dim, dtype=torch.float64)
        self.scatter: Float[Tensor, "d d"] = torch.zeros(dim, dim, dtype=torch.float64)

    def update(self, rows: Float[np.ndarray, "n d"] | Float[Tensor, "n d"]) -> None:
        """Add vectors.

        Raises:
            ShapeError: they are not rows of the right length.
            DataError: a component is NaN or infinite.
        """
        found = torch.as_tensor(rows).detach().cpu()
        if found.dim() != 2 or found.shape[1] != len(self.mean):
            raise ShapeError(
                f"expected rows of {len(self.mean)} components, found shape {tuple(found.shape)}"
            )
        room = torch.empty(min(len(found), max(1, PIECE // len(self.mean))), len(self.mean)).double()
        for piece in found.split(max(1, len(room))):
            self._merge(piece, room[: len(piece)])

    def covariance(self) -> Float[Tensor, "d d"]:
        """The unbiased covariance, Σ(x − μ)(x − μ)ᵀ/(n − 1)."""
        return self.scatter / (self.count - 1)

    def _merge(self, rows: Float[Tensor, "n d"], centred: Float[Tensor, "n d"]) -> None:
        """Add rows of any type. `centred` is a float64 buffer for them."""
        if not len(rows):
            return
        about = self.mean if self.count else rows.double().mean(0)
        torch.sub(rows, about, out=centred)
        total, shift = self.count + len(rows), centred.sum(0)
        if not torch.isfinite(shift).all():  # one component that is not finite makes the sum not finite
            raise DataError(
                "a vector has a component that is NaN or infinite; find the text that it came from"
            )
        self.scatter.addmm_(centred.T, centred)
        self.scatter.addr_(shift, shift, alpha=-1 / total)
        self.mean = about + shift / total
        self.count = total
