"""Geometry of vectors: the divergence of two samples (DAFT, equation 9), and the spread of one.

No single number shows every failure; each docstring says what its measure is blind to. The divergence is
invariant to scale, so it cannot see that both sides shrink to a point. The mean cosine sees that, but not
vectors that use few of their dimensions. The spectrum sees those, but not a common offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError, DataError, ShapeError
from counterpoint.measure.inter_iso import inter_iso
from counterpoint.measure.rows import Rows, checked_rows, several_rows, unit_rows

__all__ = [
    "DAFT_DELTA",
    "Divergence",
    "Profile",
    "cross_cosine",
    "distinct_texts",
    "divergence",
    "entropy_rank",
    "first_share",
    "kl_divergence",
    "mean_cosine",
    "participation_ratio",
    "profile",
    "spectrum",
    "spread",
]

Variances = Float[np.ndarray, " r"]

DAFT_DELTA = 250 / 512
"""Divergence per component below which DAFT calls two encoders aligned: its δ = 250 at 512 components."""

BLOCK_BYTES = 1 << 26  # bytes of distances in memory at a time
TREE_DIM = 8  # up to here a k-d tree is faster than all distances: 80 times at 2 components, 8 at 8
FLOOR = 1e-12  # minimum distance, as a share of the median one
EQUAL = 1e-5  # share of the usual distance below which two rows differ only by float32 rounding
ROUNDING = 16 * float(np.finfo(np.float32).eps)  # rounding of a row, as a share of the usual length
FEW = 0.01  # maximum share of coinciding rows; at the floor they would move the estimate by half of DAFT's δ


def kl_divergence(x: Rows, y: Rows, k: int = 1) -> float:
    """Estimate KL(P‖Q), in nats, from samples x of P and y of Q by their k-th nearest neighbours.

    KLₖ = (d/n) Σᵢ ln(sᵢ/rᵢ) + ln(m/(n−1)), where rᵢ is the distance of xᵢ to its k-th nearest neighbour among
    the other rows of x, and sᵢ among the rows of y (Pérez-Cruz 2008, "Kullback-Leibler divergence estimation
    of continuous distributions"; DAFT, equation 9). Neighbours are exact, with distances in float64.

    The estimate may be negative, and in many dimensions it is far from the divergence: use it as a scale
    only. If all sᵢ = c·rᵢ, it is d·ln c + ln(m/(n−1)). It is invariant to a common shift, rotation or scale.

    Distances are raised to at least 1e-12 of the median positive one. So duplicates in x (r = 0) count as far
    from y, and rows that also occur in y (s = 0) as near, by about 27.6·d/n each. Rows that do both count as
    0. Such rows do not show alignment: use `divergence`, which leaves them out, and `distinct_texts`.

    Raises:
        ConfigError: k is below 1.
        ShapeError: different numbers of components, or fewer than k + 1 rows of x or k of y.
        DataError: a value is not finite, or all rows of both are one point.
    """
    r, s, dim, sizes = _neighbours(x, y, k)
    distances = np.concatenate([r, s])
    floor = FLOOR * np.median(distances[distances > 0])
    ratios = np.log(np.maximum(s, floor) / np.maximum(r, floor))
    return float(dim * ratios.mean() + sizes)


@dataclass(frozen=True)
class Divergence:
    """`kl_divergence` without rows that coincide.

    Attributes:
        kl: the estimate from the other rows; None if there is no estimate.
        coincident: number of rows of x that coincide with another row of x or with one of y.
        rows: number of rows of x.
    """

    kl: float | None
    coincident: int
    rows: int


def divergence(x: Rows, y: Rows, k: int = 1) -> Divergence:
    """Estimate KL(P‖Q) as `kl_divergence` does, but only from rows that do not coincide with another.

    Neighbours estimate a density where rows differ. If a row and its neighbour are the same point, except for
    rounding, the density is infinite. The estimate then only reflects the smallest distance that counts: for
    equal encoders it is thousands below 0. Coinciding rows are left out. If they are more than 1 % of x,
    there is no estimate.

    Raises:
        ConfigError: k is below 1.
        ShapeError: different numbers of components, or fewer than k + 1 rows of x or k of y.
        DataError: a value is not finite, or all rows of both are one point.
    """
    r, s, dim, sizes = _neighbours(x, y, k)
    usual = max(float(np.median(found[found > 0])) for found in (r, s) if found.any())
    length = float(np.median(np.linalg.norm(checked_rows(x), axis=1)))
    apart = np.minimum(r, s) > max(EQUAL * usual, ROUNDING * length)
    coincident = len(apart) - int(apart.sum())
    if coincident > FEW * len(apart):
        return Divergence(None, coincident, len(apart))
    return Divergence(float(dim * np.log(s[apart] / r[apart]).mean() + sizes), coincident, len(apart))


def _neighbours(
    x: Rows, y: Rows, k: int
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], int, float]:
    """The distances r and s of `kl_divergence`, d, and ln(m/(n−1))."""
    if k < 1:
        raise ConfigError(f"k must be at least 1, found {k}")
    left, right = checked_rows(x), checked_rows(y)
    if left.shape[1] != right.shape[1]:
        raise ShapeError(f"x has vectors of {left.shape[1]} components, but y of {right.shape[1]}")
    (n, dim), m = left.shape, len(right)
    if n <= k or m < k:
        raise ShapeError(f"the {k}-th neighbours need {k + 1} rows of x and {k} of y, found {n} and {m}")
    r = _neighbour_distances(left, left, k + 1)  # every row is its own nearest
    s = _neighbour_distances(left, right, k)
    if not (r.any() or s.any()):
        raise DataError(
            "all vectors are one point, so there is no divergence; the encoders output a constant"
        )
    return r, s, dim, float(np.log(m / (n - 1)))


def mean_cosine(x: Rows) -> float:
    """The mean cosine of two different rows, (‖Σᵢuᵢ‖² − Σᵢ‖uᵢ‖²) / (n(n−1)) with uᵢ = xᵢ/‖xᵢ‖.

    It is 1 if all rows point in one direction; a row of zeros has cosine 0 with all others. It is blind to
    rows that lie in a subspace without preferring a side of it.

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    units = unit_rows(several_rows(x))
    n = len(units)
    return float((np.square(units.sum(0)).sum() - np.square(units).sum()) / (n * (n - 1)))


def cross_cosine(x: Rows, y: Rows) -> float:
    """The mean cosine of a row of x and a row of y: the product of their mean unit vectors.

    Raises:
        ShapeError: different numbers of components, or no row.
        DataError: a value is not finite.
    """
    return inter_iso(x, y)


def spread(x: Rows) -> float:
    """The mean distance to the centroid over the mean norm, Σᵢ‖xᵢ − x̄‖ / Σᵢ‖xᵢ‖; 0 means a single point.

    For unit vectors it is near √(1 − mean cosine). It is blind to the number of dimensions used.

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    rows = several_rows(x)
    norms = np.linalg.norm(rows, axis=1).sum()
    away = np.linalg.norm(rows - rows.mean(0), axis=1).sum()
    return float(away / norms) if norms else 0.0


def spectrum(x: Rows) -> Variances:
    """Variances along principal directions, falling: σᵢ²/(n−1), σᵢ the centred rows' singular values.

    There are min(n−1, d) of them. Because rows are centred, a common offset is not visible.

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    rows = several_rows(x)
    rows = rows - rows.mean(0)
    n, dim = rows.shape
    gram = rows @ rows.T if n < dim else rows.T @ rows
    values = np.linalg.eigvalsh(gram)[::-1][: min(n - 1, dim)]
    return np.maximum(values, 0) / (n - 1)


def participation_ratio(variances: Variances) -> float:
    """An effective rank: (Σλ)² / Σλ², which is k for k equal variances; 0 if nothing varies.

    Raises:
        ShapeError: rows instead of their variances (`spectrum`).
    """
    variances = _one_dimensional(variances)
    total = np.square(variances).sum()
    return float(variances.sum() ** 2 / total) if total else 0.0


def entropy_rank(variances: Variances) -> float:
    """An effective rank that is more sensitive to small variances: exp(−Σ p ln p) with p = √λ / Σ√λ.

    (Roy & Vetterli 2007, "The effective rank".) It is k for k equal variances, and 0 if nothing varies.

    Raises:
        ShapeError: rows instead of their variances (`spectrum`).
    """
    scales = np.sqrt(_one_dimensional(variances))
    shares = scales[scales > 0] / scales.sum() if scales.any() else scales[:0]
    return float(np.exp(-(shares * np.log(shares)).sum())) if len(shares) else 0.0


def first_share(variances: Variances) -> float:
    """The share of the variance in the first direction, λ₁/Σλ; 1 if nothing varies.

    Raises:
        ShapeError: rows instead of their variances (`spectrum`).
    """
    variances = _one_dimensional(variances)
    total = variances.sum()
    return float(variances.max() / total) if total else 1.0


def _one_dimensional(variances: Variances) -> Variances:
    if variances.ndim != 1:
        raise ShapeError(
            f"expected variances, found an array of {variances.ndim} dimensions; use spectrum(rows)"
        )
    return variances


def distinct_texts(texts: Iterable[str]) -> list[str]:
    """Keep the first of all texts with the same words, ignoring case, spaces and punctuation.

    Most tokenizers turn such texts into almost the same vector, and `kl_divergence` must not see a vector
    twice.
    """
    found: dict[tuple[str, ...] | str, str] = {}
    for text in texts:
        found.setdefault(tuple(re.findall(r"\w+", text.casefold())) or text, text)
    return list(found.values())


@dataclass(frozen=True)
class Profile:
    """Measures of one side's vectors; each is that of the function with its name.

    Attributes:
        rows: number of vectors.
        dimension: components of each.
        cosine: `mean_cosine`.
        spread: `spread`.
        rank: `participation_ratio` of the spectrum.
        entropy_rank: `entropy_rank` of it.
        first_share: `first_share` of it.
    """

    rows: int
    dimension: int
    cosine: float
    spread: float
    rank: float
    entropy_rank: float
    first_share: float

    def to_dict(self) -> dict[str, int | float]:
        """The numbers by name."""
        return asdict(self)


def profile(x: Rows) -> Profile:
    """Compute all measures of this module for one sample.

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    variances = spectrum(x)
    return Profile(
        rows=len(x),
        dimension=x.shape[1],
        cosine=mean_cosine(x),
        spread=spread(x),
        rank=participation_ratio(variances),
        entropy_rank=entropy_rank(variances),
        first_share=first_share(variances),
    )


def _neighbour_distances(x: Rows, y: Rows, k: int) -> Float[np.ndarray, " n"]:
    if x.shape[1] <= TREE_DIM:
        from scipy.spatial import KDTree

        return KDTree(y).query(x, k)[0].reshape(len(x), k)[:, -1]
    return _all_distances(x, y, k)


def _all_distances(x: Rows, y: Rows, k: int) -> Float[np.ndarray, " n"]:
    """Compute the same from all distances, block by block.

    ‖a−b‖² = ‖a‖² + ‖b‖² − 2a·b finds the neighbours fast, but is imprecise for small distances. So the rows
    are centred first, and the distances of the neighbours are computed again from the differences.
    """
    centre = y.mean(0)
    x, y = x - centre, y - centre
    squares = np.square(y).sum(1)
    found = np.empty(len(x))
    block = max(1, BLOCK_BYTES // (8 * len(y)))
    for start in range(0, len(x), block):
        rows = x[start : start + block]
        order = squares - 2 * (rows @ y.T)  # ‖a‖² is constant within a row and does not change the order
        nearest = np.argpartition(order, k - 1, axis=1)[:, :k] if k > 1 else order.argmin(1)[:, None]
        apart = np.stack([np.linalg.norm(rows - y[column], axis=1) for column in nearest.T], axis=1)
        found[start : start + block] = apart.max(1)
    return found
