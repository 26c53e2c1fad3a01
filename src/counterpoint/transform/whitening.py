"""`Whitening`: decorrelated components of equal variance, optionally only the leading ones."""

from __future__ import annotations

import warnings
from typing import Self, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from counterpoint.errors import ConfigError, DataError, NotFittedError, ShapeError
from counterpoint.transform.moments import Moments
from counterpoint.transform.transform import Rows, Transform
from counterpoint.vectors import Vectors

__all__ = ["Whitening"]

FLAT = 1e-8
"""Share of the largest variance below which a direction holds rounding errors only."""
ROUNDING = 1e-24
"""Variance below this share of the squared mean is the rounding of float64 sums."""
ENOUGH = 10
"""Rows wanted for each component."""


@final
class Whitening(Transform):
    """z = (x − μ)·U·Λᵖ, with Σ = UΛUᵀ the covariance of the vectors it was fitted on.

    Jung et al. (Isotropic Representation Can Improve Dense Retrieval), equations 7 to 10, is p = −½ at
    full rank; p = 0 only rotates (PCA).

    Args:
        dim: components of a vector.
        rank: keep this many leading directions; all if not given.
        power: the exponent p of the eigenvalues.
        centre: subtract the mean. If not, Σ is the second moment about the origin.
        normalise: divide the result by its length.
        keep_zeros: leave a row that is exactly zero at zero, instead of moving it to −μ·U·Λᵖ.

    A direction whose eigenvalue is below 1e-8 of the largest is dropped: it comes out as a component that
    is always 0. `fit` warns of it, and of fewer than 10 rows for each component.
    """

    count_: Tensor
    mean_: Tensor
    matrix_: Tensor

    def __init__(
        self,
        dim: int,
        rank: int | None = None,
        power: float = -0.5,
        centre: bool = True,
        normalise: bool = False,
        keep_zeros: bool = True,
    ):
        super().__init__()
        if dim < 1 or (rank is not None and not 1 <= rank <= dim):
            raise ConfigError(f"Whitening: rank must be from 1 to dim, found rank {rank} and dim {dim}")
        self.dim, self.rank, self.power = dim, rank, power
        self.centre, self.normalise, self.keep_zeros = centre, normalise, keep_zeros

    def _allocate(self) -> None:
        self.register_buffer("count_", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean_", torch.zeros(self.dim))
        self.register_buffer("matrix_", torch.zeros(self.dim, self.rank or self.dim))

    @property
    def kept(self) -> int:
        """Number of directions that were not dropped."""
        self._check_fitted()
        return int(self.matrix_.any(0).sum())

    def fit(self, rows: Rows) -> Self:
        """Learn μ, U and Λ, accumulating in float64.

        Raises:
            ShapeError: rows of another length.
            DataError: components that are not finite, or fewer than two different rows.
        """
        moments = Moments(self.dim)
        for piece in rows:
            moments.update(piece)
        matrix = self._matrix(moments)
        self.setup()
        self.mean_.copy_(moments.mean if self.centre else torch.zeros(self.dim))
        self.matrix_.copy_(matrix)
        self.count_.fill_(moments.count)
        return self

    def forward(self, vectors: Vectors) -> Vectors:
        """The whitened rows, in the type they came in."""
        self._check_fitted()
        if vectors.values.shape[2] != self.dim:
            raise ShapeError(f"fitted on vectors of {self.dim} components, found {vectors.values.shape[2]}")
        values = vectors.values.masked_fill(~vectors.mask[:, :, None], 0)
        dtype = torch.promote_types(values.dtype, torch.float32)
        mapped = (values.to(dtype) - self.mean_.to(dtype)) @ self.matrix_.to(dtype)
        real = vectors.mask[:, :, None]
        if self.keep_zeros:
            real = real & values.any(-1, keepdim=True)
        mapped = mapped.masked_fill(~real, 0)
        mapped = functional.normalize(mapped, dim=-1) if self.normalise else mapped
        return vectors.with_values(mapped.to(values.dtype))

    def _check_fitted(self) -> None:
        if not self.is_set_up or not self.count_:
            raise NotFittedError("Whitening has seen no vectors yet; call fit(rows) or load a fitted one")

    def _matrix(self, moments: Moments) -> Float[Tensor, "d k"]:
        """U·Λᵖ for the leading directions, with zero columns for those that are dropped."""
        if moments.count < 2:
            raise DataError(f"whitening needs at least two different vectors, found {moments.count}")
        spread = moments.covariance()
        if not self.centre:
            spread = moments.scatter / moments.count + torch.outer(moments.mean, moments.mean)
        variances, directions = torch.linalg.eigh(spread)
        variances, directions = variances.flip(0), directions.flip(1)
        if variances[0] <= ROUNDING * (moments.mean @ moments.mean):
            raise DataError(f"whitening needs at least two different vectors, all {moments.count} are equal")
        kept = variances > FLAT * variances[0]
        self._report(moments.count, int(kept.sum()))
        # An eigenvector has no sign of its own; its largest component is made positive.
        largest = directions.abs().argmax(0, keepdim=True)
        directions = directions * directions.gather(0, largest).sign()
        scale = torch.where(kept, variances.clamp(min=variances[0] * FLAT) ** self.power, 0)
        return (directions * scale)[:, : self.rank or self.dim]

    def _report(self, count: int, kept: int) -> None:
        wanted = self.rank or self.dim
        if kept < wanted:
            warnings.warn(
                f"Whitening: the vectors vary in {kept} directions only, so {wanted - kept} of {wanted} "
                "components will be 0. Fit on more vectors or ask for a lower rank",
                stacklevel=4,
            )
        if count < ENOUGH * self.dim:
            warnings.warn(
                f"Whitening: fitted on {count} vectors of {self.dim} components; "
                f"for a stable estimate fit on at least {ENOUGH * self.dim}",
                stacklevel=4,
            )
