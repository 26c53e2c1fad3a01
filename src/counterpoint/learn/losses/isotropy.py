"""Losses that make a vector space more or less isotropic: InterIso (HIL), CosReg, I-STAR.

Kim et al. 2024, HIL, sections 3.1 to 3.3 and appendix A. All use the rows of a set: every position of a
query, including [MASK], and those of a document that are neither padding nor skipped by the head
(punctuation).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.learn.loss import Loss
from counterpoint.learn.losses.entries import own_entries, wide
from counterpoint.learn.step import Step
from counterpoint.score.scorer import vector_sets
from counterpoint.vectors import Vectors

__all__ = ["CosReg", "IStar", "InterIso", "OfEachSide"]


@final
class InterIso(Loss):
    """λR with R = InterIso(q, d) = mean over i, j of q_i·d_j (eq. 2), which is ⟨mean of q, mean of d⟩.

    The weight is part of the loss, because its sign matters. λ < 0 moves rows of queries and documents
    together (anisotropic, InterIso to 1). λ > 0 moves them apart (isotropic, to 0), using |InterIso|. The
    mean is over each query's own documents, then over queries. A text without rows counts as 0. HIL's
    λ(−|InterIso_L| + InterIso_H) with λ = −0.3 is `InterIso("l", 0.3) + InterIso("h", -0.3)`.

    Args:
        on: the vector set, of unit rows.
        weight: λ.
        absolute: whether R is |InterIso|. None for True where λ > 0.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, weight: float = 1.0, absolute: bool | None = None, name: str | None = None):
        super().__init__(name)
        self.on = on
        self.weight = weight
        self.absolute = absolute

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """λ times the mean over queries."""
        queries, documents = vector_sets(step.q, step.d, self.on)
        every = _mean_row(queries) @ _mean_row(documents).T
        found, there = own_entries(every, step.targets.own)
        if self.weight > 0 if self.absolute is None else self.absolute:
            found = found.abs()
        return self.weight * (found.masked_fill(~there, 0).sum(1) / there.sum(1)).mean()


class OfEachSide(Loss, ABC):
    """(λ/2)(R(queries' rows) + R(documents' rows)), with all rows of the batch on each side. Abstract.

    The two sides have different distributions (HIL, appendix A.3).

    Args:
        on: the vector set.
        weight: λ, above 0 for isotropy, below 0 for anisotropy.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, weight: float = 1.0, name: str | None = None):
        super().__init__(name)
        self.on = on
        self.weight = weight

    @abstractmethod
    def of(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
        """R of some rows."""

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """λ/2 times the sum of R over both sides."""
        found = [self.of(wide(side.values[side.mask])) for side in vector_sets(step.q, step.d, self.on)]
        return self.weight / 2 * torch.stack(found).sum()


@final
class CosReg(OfEachSide):
    """R = (1/M²) Σ_i Σ_{j≠i} cos(x_i, x_j) over M rows (Gao et al. 2019, as printed in HIL).

    Args: as `OfEachSide`.
    """

    def of(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
        """Computed as ‖Σ x̂‖² − Σ‖x̂‖², without the matrix of all pairs."""
        unit = functional.normalize(rows, dim=-1)
        return (unit.sum(0).square().sum() - unit.square().sum()) / max(len(rows), 1) ** 2


@final
class IStar(OfEachSide):
    """R = 1 − IsoScore*, of the covariance shrunk towards the identity, C = (1 − ζ)·cov + ζ·I.

    Rudman and Eickhoff 2024 shrink towards a covariance of many points and use the states of all layers. HIL
    uses the identity and the projected last states. IsoScore is (PR − 1)/(n − 1) with the participation ratio
    PR = tr(C)²/tr(C²), which needs no eigenvalues.

    Args:
        on: the vector set.
        weight: λ, above 0 for isotropy, below 0 for anisotropy.
        zeta: ζ, above 0 and at most 1. HIL does not state it; 0.2 is from the authors of I-STAR.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, weight: float = 1.0, zeta: float = 0.2, name: str | None = None):
        super().__init__(on, weight, name)
        if not 0 < zeta <= 1:
            raise ConfigError(f"IStar: zeta must be above 0 and at most 1, found {zeta}")
        self.zeta = zeta

    def of(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
        """R from the unbiased covariance, which is 0 for a single row.

        Raises:
            ShapeError: the rows have one component.
        """
        count, dim = rows.shape
        if dim < 2:
            raise ShapeError(f"{self.label}: IsoScore needs vectors of 2 components, {self.on!r} has {dim}")
        centred = rows - rows.sum(0) / max(count, 1)
        covariance = centred.T @ centred / max(count - 1, 1)
        shrunk = (1 - self.zeta) * covariance + self.zeta * torch.eye(dim).to(covariance)
        ratio = shrunk.trace().square() / shrunk.square().sum()
        return 1 - (ratio - 1) / (dim - 1)


def _mean_row(vectors: Vectors) -> Float[Tensor, "b d"]:
    """The mean of each text's rows, zero for a text without rows."""
    rows = wide(vectors.values.masked_fill(~vectors.mask[:, :, None], 0))
    return rows.sum(1) / vectors.mask.sum(1, keepdim=True).clamp(min=1)
