"""Isotropy: whether vectors prefer certain directions.

Sources: Jung et al. (Isotropic Representation Can Improve Dense Retrieval), section 3.2; HIL, appendix A.1;
Rudman et al. 2022 (IsoScore); Mu and Viswanath 2018 (partition isotropy); Kovaleva et al. 2021 and Timkey and
van Schijndel 2021 (outlier dimensions). All functions take packed rows, without padding.

The average cosine is `counterpoint.measure.alignment.mean_cosine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ShapeError
from counterpoint.measure.alignment import participation_ratio, spectrum
from counterpoint.measure.rows import Rows, checked_rows, several_rows, unit_rows

__all__ = [
    "Isotropy",
    "IsotropyStream",
    "Outlier",
    "Signs",
    "cosine_parts",
    "iso_score",
    "isotropy",
    "outlier_dimensions",
    "partition_isotropy",
]

Signs = Literal["both", "positive"]
"""Evaluate each eigenvector with its negative, or only in the sign whose components sum to more than 0."""

OUTLYING = 3.0  # standard deviations, as in all papers on outlier dimensions


def partition_isotropy(x: Rows, *, signs: Signs = "both", unit: bool = True) -> float:
    """I(W) = min q(a) / max q(a) over the eigenvectors a of WᵀW, with q(a) = Σᵢ exp(wᵢ·a); from 0 to 1.

    Isotropic DR, section 3.2.1. With `unit=False`, it is the partition isotropy of Mu and Viswanath (HIL,
    appendix A.1), which depends strongly on norms and on the number of rows: white vectors of 64 components
    have about 0.09 with 50 rows and 0.57 with 1,000. Scaled to length 1, they have 0.88 and 0.98. An
    eigenvector has no sign but q depends on it, so both signs are evaluated. Use `signs="positive"` to
    compare with printed values.

    With fewer rows than components, there are only as many directions as rows, the leading ones, as in the
    thin SVD of the released code. If eigenvalues are equal, the eigenvectors and the value are not unique.
    The measure is blind to subspaces: on unit vectors it is near exp(−2√(mean cosine)), or with
    `signs="positive"`, and in print, near exp(−√(mean cosine)).

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    rows = unit_rows(several_rows(x)) if unit else several_rows(x)
    few = len(rows) < rows.shape[1]
    directions = np.linalg.svd(rows, full_matrices=False)[2].T if few else np.linalg.eigh(rows.T @ rows)[1]
    if signs == "positive":
        directions = directions * np.where(directions.sum(0) < 0, -1, 1)
    along = rows @ directions
    sides = [along, -along] if signs == "both" else [along]
    logs = np.concatenate([_log_sum_exp(side) for side in sides])
    return float(np.exp(logs.min() - logs.max()))


def iso_score(x: Rows) -> float:
    """IsoScore: 1 if all components vary equally and independently, (k−1)/(d−1) if the rows fill k of d.

    Rudman et al. 2022 define it by the distance of the normalised PCA variances to the identity. This equals
    (PR − 1)/(d − 1), where PR = tr(C)²/tr(C²) is the participation ratio of the covariance. (The formula
    printed in HIL's appendix A.1 has a misplaced square and is not bounded by 1.) It is blind to a common
    offset, and so to cones. It is 0 if nothing varies.

    Raises:
        ShapeError: fewer than two rows, or one component.
        DataError: a value is not finite.
    """
    variances = spectrum(x)
    return _iso_score(participation_ratio(variances), np.shape(x)[1])


def cosine_parts(x: Rows) -> Float[np.ndarray, " d"]:
    """Contribution of each component to the mean cosine of two different rows; they sum to it.

    Timkey and van Schijndel 2021, section 3: a few components may contribute almost all of it.

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    units = unit_rows(several_rows(x))
    return _cosine_parts(units.sum(0), np.square(units).sum(0), len(units))


@final
@dataclass(frozen=True)
class Outlier:
    """An outlier component.

    Attributes:
        dimension: index of the component, from 0.
        magnitude: mean of |x|.
        deviations: distance above the mean magnitude of all components, in their standard deviations.
        cosine_part: its contribution to the mean cosine of two rows.
    """

    dimension: int
    magnitude: float
    deviations: float
    cosine_part: float


def outlier_dimensions(x: Rows, deviations: float = OUTLYING) -> list[Outlier]:
    """Components with a mean magnitude far above the mean of all, in standard deviations; largest first.

    Three deviations are the threshold of Kovaleva et al. 2021 and Luo et al. 2021. With fewer than 11
    components, none can be so far away. A rotation changes the result: it depends on the axes, not on the
    cloud.

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    rows = several_rows(x)
    return _outliers(np.abs(rows).mean(0), cosine_parts(rows), deviations)


@final
@dataclass(frozen=True)
class Isotropy:
    """Isotropy measures of one sample of vectors.

    Attributes:
        rows: number of vectors.
        batches: number of batches in which they came.
        cosine: `mean_cosine` of all pairs of rows, across batches.
        batch_cosine: mean over batches of the mean cosine within a batch, as in Isotropic DR's code.
        partition: mean over batches of `partition_isotropy`, with unit vectors and both signs.
        iso_score: `iso_score` of all rows; None for vectors of one component.
        outliers: `outlier_dimensions` of all rows.
    """

    rows: int
    batches: int
    cosine: float
    batch_cosine: float
    partition: float
    iso_score: float | None
    outliers: Sequence[Outlier]

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name."""
        return asdict(self)


def isotropy(x: Rows) -> Isotropy:
    """Compute all measures of this module for one sample, as one batch.

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    stream = IsotropyStream(np.shape(several_rows(x))[1])
    stream.update(x)
    return stream.result()


@final
class IsotropyStream:
    """Isotropy measures of vectors that come in batches and are not kept.

    The average cosine, IsoScore and the outlier dimensions are computed as if all rows were there at once.
    I(W) needs the rows again when its directions are known. It is therefore averaged over batches with equal
    weight, as in Isotropic DR's code (which also averages the cosine: `batch_cosine`). Use batches of equal
    size.

    Args:
        dim: components of a vector.
    """

    def __init__(self, dim: int):
        self._count = 0
        self._units, self._squares, self._sizes, self._mean = np.zeros((4, dim))
        self._scatter = np.zeros((dim, dim))
        self._partitions: list[float] = []
        self._cosines: list[float] = []

    def update(self, rows: Rows) -> None:
        """Add a batch of packed rows; a single row counts only in the measures over all rows.

        Raises:
            ShapeError: they are not rows of `dim` components.
            DataError: a value is not finite.
        """
        found = checked_rows(rows)
        if found.shape[1] != len(self._mean):
            raise ShapeError(f"expected rows of {len(self._mean)} components, found shape {found.shape}")
        if not len(found):
            return
        units = unit_rows(found)
        self._units += units.sum(0)
        self._squares += np.square(units).sum(0)
        self._sizes += np.abs(found).sum(0)
        self._merge(found)
        if len(found) > 1:
            self._partitions.append(partition_isotropy(found))
            self._cosines.append(float(cosine_parts(found).sum()))

    def result(self) -> Isotropy:
        """The measures of all batches so far.

        Raises:
            ShapeError: there was no batch of at least two rows.
        """
        if not self._partitions:
            raise ShapeError("needs at least one batch of two vectors")
        total = np.square(self._scatter).sum()
        rank = np.trace(self._scatter) ** 2 / total if total else 0.0
        parts = _cosine_parts(self._units, self._squares, self._count)
        return Isotropy(
            rows=self._count,
            batches=len(self._partitions),
            cosine=float(parts.sum()),
            batch_cosine=float(np.mean(self._cosines)),
            partition=float(np.mean(self._partitions)),
            iso_score=_iso_score(float(rank), len(self._mean)) if len(self._mean) > 1 else None,
            outliers=_outliers(self._sizes / self._count, parts, OUTLYING),
        )

    def _merge(self, rows: Rows) -> None:
        """Chan, Golub and LeVeque (1979): S = S_a + S_b + δδᵀ·n_a·n_b/(n_a + n_b)."""
        mean = rows.mean(0)
        centred, delta = rows - mean, mean - self._mean
        total = self._count + len(rows)
        self._scatter += centred.T @ centred + np.outer(delta, delta) * (self._count * len(rows) / total)
        self._mean += delta * (len(rows) / total)
        self._count = total


def _log_sum_exp(values: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " k"]:
    """Logarithm of Σ exp of each column; the sum itself may exceed float64."""
    most = values.max(0)
    return most + np.log(np.exp(values - most).sum(0))


def _iso_score(rank: float, dim: int) -> float:
    if dim < 2:
        raise ShapeError("IsoScore compares components and needs at least two, found vectors of one")
    return (rank - 1) / (dim - 1) if rank else 0.0


def _cosine_parts(
    total: Float[np.ndarray, " d"], squares: Float[np.ndarray, " d"], n: int
) -> Float[np.ndarray, " d"]:
    return (np.square(total) - squares) / (n * (n - 1))


def _outliers(
    sizes: Float[np.ndarray, " d"], parts: Float[np.ndarray, " d"], deviations: float
) -> list[Outlier]:
    away = (sizes - sizes.mean()) / (sizes.std() or 1.0)
    return [
        Outlier(int(at), float(sizes[at]), float(away[at]), float(parts[at]))
        for at in np.argsort(-away, kind="stable")
        if away[at] > deviations
    ]
