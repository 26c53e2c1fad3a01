"""`Whitening`: decorrelated components of equal variance, optionally only the leading ones."""

from __future__ import annotations

import warnings
from typing import Literal, Self, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from counterpoint.errors import ConfigError, DataError
from counterpoint.transform.moments import Moments
from counterpoint.transform.transform import FittedTransform, Rows
from counterpoint.vectors import Vectors

__all__ = ["Whitening", "oracle_shrinkage"]

FLAT = 1e-8
"""Share of the largest variance below which a direction contains only rounding errors."""
ROUNDING = 1e-24
"""Share of the squared mean below which a variance is only the rounding of float64 sums."""
BLOCK = 2**18
"""Components mapped at a time."""
ENOUGH = 10
"""Rows recommended per component."""


@final
class Whitening(FittedTransform):
    """z = (x − μ)·U·Λᵖ, where Σ = UΛUᵀ is the covariance of the vectors it was fitted to.

    p = −½ at full rank is the whitening of Jung et al. (Isotropic Representation Can Improve Dense
    Retrieval), equations 7 to 10. p = 0 only rotates (PCA).

    Args:
        dim: components of a vector.
        rank: number of leading directions to keep. None for all.
        power: the exponent p of the eigenvalues.
        centre: subtract the mean. Otherwise Σ is the second moment about the origin.
        normalise: divide the result by its length.
        shrinkage: share ρ of Σ to replace by a multiple of the identity with the same trace:
            (1 − ρ)Σ + ρ·(tr Σ/d)·I. This keeps directions with little evidence from being amplified. 1 gives
            all directions one scale. "oas" computes ρ from Σ and the number of rows (`oracle_shrinkage`).

    A row that is exactly zero means nothing and stays zero. A direction whose eigenvalue is below 1e-8 of the
    largest is dropped, which makes its component 0. `fit` warns of it, and, without shrinkage, of fewer than
    10 rows per component.
    """

    mean_: Tensor
    matrix_: Tensor

    def __init__(
        self,
        dim: int,
        rank: int | None = None,
        power: float = -0.5,
        centre: bool = True,
        normalise: bool = False,
        shrinkage: float | Literal["oas"] = 0.0,
    ):
        super().__init__()
        if dim < 1 or (rank is not None and not 1 <= rank <= dim):
            raise ConfigError(f"Whitening: rank must be from 1 to dim, found rank {rank} and dim {dim}")
        if shrinkage != "oas" and not (isinstance(shrinkage, int | float) and 0 <= shrinkage <= 1):
            raise ConfigError(f"Whitening: shrinkage must be 'oas' or from 0 to 1, found {shrinkage!r}")
        self.dim, self.rank, self.power = dim, rank, power
        self.centre, self.normalise = centre, normalise
        self.shrinkage: float | Literal["oas"] = shrinkage

    def _allocate(self) -> None:
        self.register_buffer("count_", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean_", torch.zeros(self.dim))
        self.register_buffer("matrix_", torch.zeros(self.dim, self.rank or self.dim))

    @property
    def kept(self) -> int:
        """Number of directions that were not dropped."""
        self.check_fitted()
        return int(self.matrix_.any(0).sum())

    def out_dim(self, in_dim: int) -> int:
        """The rank if it is given."""
        return self.rank or in_dim

    def fit(self, rows: Rows) -> Self:
        """Learn μ, U and Λ, with sums in float64.

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

    def recentre(self, rows: Rows) -> Self:
        """Replace the mean to subtract by that of these rows. Directions and scales stay as fitted.

        Texts of another collection have another mean. A map from elsewhere does not subtract it, which leaves
        the vectors in a cone around it. A mean needs only a few hundred rows, a covariance thousands. Ours.

        Raises:
            NotFittedError: nothing has been fitted.
            ConfigError: the map does not centre.
            ShapeError: rows of another length.
            DataError: components that are not finite, or no rows.
        """
        self.check_fitted()
        if not self.centre:
            raise ConfigError("Whitening: centre is False, so there is no mean to replace")
        moments = Moments(self.dim)
        for piece in rows:
            moments.update(piece)
        if not moments.count:
            raise DataError("there are no rows to compute the mean of")
        self.mean_.copy_(moments.mean)
        return self

    def forward(self, vectors: Vectors) -> Vectors:
        """The whitened rows, in the input's type."""
        self.check_fitted(vectors.values.shape[2])
        dtype = torch.promote_types(vectors.values.dtype, torch.float32)
        mean, matrix = self.mean_.to(dtype), self.matrix_.to(dtype)
        rows, real = vectors.values.flatten(0, 1), vectors.mask.flatten()
        mapped = rows.new_empty(len(rows), matrix.shape[1])
        # Blocks stay in the cache during all operations.
        for start in range(0, len(rows), max(1, BLOCK // self.dim)):
            piece = slice(start, start + max(1, BLOCK // self.dim))
            mapped[piece] = self._map(rows[piece], real[piece], mean, matrix).to(mapped.dtype)
        return vectors.with_values(mapped.view(*vectors.mask.shape, matrix.shape[1]))

    def _map(
        self, rows: Float[Tensor, "n d"], real: Bool[Tensor, " n"], mean: Tensor, matrix: Tensor
    ) -> Float[Tensor, "n k"]:
        rows = rows if real.all() else rows.masked_fill(~real[:, None], 0)
        mapped = (rows.to(matrix.dtype) - mean) @ matrix
        if not rows.detach().norm(dim=1).all():  # cheaper than a search for zero rows, which are rare
            mapped = mapped.masked_fill(~rows.any(1, keepdim=True), 0)
        return functional.normalize(mapped, dim=-1) if self.normalise else mapped

    def _matrix(self, moments: Moments) -> Float[Tensor, "d k"]:
        """U·Λᵖ for the leading directions, with zero columns for those that are dropped."""
        if moments.count < 2:
            raise DataError(f"whitening needs at least two different vectors, found {moments.count}")
        spread = moments.covariance()
        if not self.centre:
            spread = moments.scatter / moments.count + torch.outer(moments.mean, moments.mean)
        # Of the covariance as it is: shrunk altogether it has no leading directions, which `rank` needs.
        variances, directions = torch.linalg.eigh(spread)
        variances, directions = variances.flip(0), directions.flip(1)
        share = oracle_shrinkage(spread, moments.count) if self.shrinkage == "oas" else self.shrinkage
        variances = (1 - share) * variances + share * variances.mean()
        if variances[0] <= ROUNDING * (moments.mean @ moments.mean):
            raise DataError(f"whitening needs at least two different vectors, all {moments.count} are equal")
        kept = variances > FLAT * variances[0]
        self._report(moments.count, int(kept.sum()))
        # The sign of an eigenvector is arbitrary, so its largest component is made positive.
        largest = directions.abs().argmax(0, keepdim=True)
        directions = directions * directions.gather(0, largest).sign()
        scale = torch.where(kept, variances.clamp(min=variances[0] * FLAT) ** self.power, 0)
        return (directions * scale)[:, : self.rank or self.dim]

    def _report(self, count: int, kept: int) -> None:
        wanted = self.rank or self.dim
        if kept < wanted:
            warnings.warn(
                f"Whitening: the {count:,} vectors of {self.dim} components vary in {kept} directions only, "
                f"so {wanted - kept} of {wanted} components will be 0. Fit on more vectors or ask for a "
                "lower rank",
                stacklevel=4,
            )
        if count < ENOUGH * self.dim and not self.shrinkage:
            warnings.warn(
                f"Whitening: fitted on {count} vectors of {self.dim} components; for a stable estimate "
                f"fit on at least {ENOUGH * self.dim}, or shrink it (shrinkage='oas')",
                stacklevel=4,
            )


def oracle_shrinkage(covariance: Float[Tensor, "d d"], count: int) -> float:
    """The share ρ that brings the covariance of `count` Gaussian rows closest to the true covariance.

    Chen, Wiesel, Eldar and Hero 2010 (OAS), equation 23. It needs only the covariance, so one pass over the
    rows. Ledoit and Wolf's estimate needs fourth moments. Dependent rows, such as the tokens of one text,
    carry less information than their number suggests, so ρ is too small for them.
    """
    dim = len(covariance)
    squares, square = float((covariance**2).sum()), float(covariance.trace()) ** 2
    above = (1 - 2 / dim) * squares + square
    below = (count + 1 - 2 / dim) * (squares - square / dim)
    return 1.0 if above >= below else above / below
