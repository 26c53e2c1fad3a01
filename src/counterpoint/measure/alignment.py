"""How vectors lie in space: the divergence of two samples (DAFT, equation 9), and the spread of one.

No single number sees every failure, and each one's docstring says what it is blind to. The divergence is
invariant to scale, so it cannot see both sides shrink to a point; the mean cosine sees that, but not vectors
that use few of their dimensions; the spectrum sees those, but not a common offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError, DataError, ShapeError
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
"""The divergence per component below which DAFT calls two encoders aligned: its δ = 250 at 512 components."""

BLOCK_BYTES = 1 << 26  # of distances held at a time
TREE_DIM = 8  # up to here a k-d tree is faster than all distances: 80 times at 2 components, 8 at 8
FLOOR = 1e-12  # least distance, as a share of the median one
EQUAL = 1e-5  # share of the usual distance below which two rows differ by rounding in float32 only
ROUNDING = 16 * float(np.finfo(np.float32).eps)  # share of the usual length that rounding moves a row by
FEW = 0.01  # of the rows may coincide; at the floor they would move the estimate by half of DAFT's δ


def kl_divergence(x: Rows, y: Rows, k: int = 1) -> float:
    """Estimate KL(P‖Q), in nats, from samples x of P and y of Q by their k-th nearest neighbours.

    KLₖ = (d/n) Σᵢ ln(sᵢ/rᵢ) + ln(m/(n−1)), where rᵢ is the distance of xᵢ to its k-th nearest neighbour among
    the other rows of x and sᵢ that among the rows of y (Pérez-Cruz 2008, "Kullback-Leibler divergence
    estimation of continuous distributions"; DAFT, equation 9). Neighbours are exact, distances in float64.

    The estimate may be negative, and in many dimensions it is far from the divergence: read it as a scale. If
    all sᵢ = c·rᵢ, it is d·ln c + ln(m/(n−1)). It is invariant to a common shift, rotation or scale.

    Distances are raised to 1e-12 of the median positive one. So rows that occur twice in x (r = 0) count as
    far from y and rows that occur in y (s = 0) as near, by about 27.6·d/n each, and rows that do both as 0.
    Such rows say nothing about alignment: see `divergence`, which leaves them out, and `distinct_texts`.

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
        kl: the estimate from the other rows; None where it cannot be told.
        coincident: rows of x that coincide with another row of x or with one of y.
        rows: of x.
    """

    kl: float | None
    coincident: int
    rows: int


def divergence(x: Rows, y: Rows, k: int = 1) -> Divergence:
    """Estimate KL(P‖Q) as `kl_divergence` does, but only from rows that do not coincide with another.

    Neighbours estimate a density where rows differ. Where a row's neighbour is at the same point, but for
    rounding, the density is infinite and the estimate an artefact of the smallest distance that counts: of
    encoders that are equal it is thousands below 0. Rows that coincide are left out, and where they are more
    than 1 % of x there is no estimate.

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
        raise ShapeError(f"x has vectors of {left.shape[1]} components, y of {right.shape[1]}")
    (n, dim), m = left.shape, len(right)
    if n <= k or m < k:
        raise ShapeError(f"the {k}-th neighbours need {k + 1} rows of x and {k} of y, found {n} and {m}")
    r = _neighbour_distances(left, left, k + 1)  # every row is its own nearest
    s = _neighbour_distances(left, right, k)
    if not (r.any() or s.any()):
        raise DataError("all vectors are one point, which has no divergence; the encoders output a constant")
    return r, s, dim, float(np.log(m / (n - 1)))


def mean_cosine(x: Rows) -> float:
    """The mean cosine of two different rows, (‖Σᵢuᵢ‖² − Σᵢ‖uᵢ‖²) / (n(n−1)) with uᵢ = xᵢ/‖xᵢ‖.

    It is 1 where all point in one direction; a row of zeros has cosine 0 with all others. Blind to rows that
    lie in a subspace without preferring a side of it.

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    units = unit_rows(several_rows(x))
    n = len(units)
    return float((np.square(units.sum(0)).sum() - np.square(units).sum()) / (n * (n - 1)))


def cross_cosine(x: Rows, y: Rows) -> float:
    """The mean cosine of a row of x and a row of y: the product of their mean directions.

    Raises:
        ShapeError: different numbers of components, or no row.
        DataError: a value is not finite.
    """
    left, right = checked_rows(x), checked_rows(y)
    if left.shape[1:] != right.shape[1:] or not len(left) or not len(right):
        raise ShapeError(f"expected rows of equal length, found arrays of {left.shape} and {right.shape}")
    return float(unit_rows(left).mean(0) @ unit_rows(right).mean(0))


def spread(x: Rows) -> float:
    """The mean distance to the centroid over the mean norm, Σᵢ‖xᵢ − x̄‖ / Σᵢ‖xᵢ‖; 0 is a single point.

    For unit vectors it is near √(1 − mean cosine). Blind to the number of dimensions used.

    Raises:
        ShapeError: fewer than two rows.
        DataError: a value is not finite.
    """
    rows = several_rows(x)
    norms = np.linalg.norm(rows, axis=1).sum()
    away = np.linalg.norm(rows - rows.mean(0), axis=1).sum()
    return float(away / norms) if norms else 0.0


def spectrum(x: Rows) -> Variances:
    """Variances along the principal directions, falling: σᵢ²/(n−1), σᵢ the centred rows' singular values.

    There are min(n−1, d) of them. Being centred, they are blind to an offset that all rows share.

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
    """An effective rank: (Σλ)² / Σλ², which is k for k equal variances; 0 where nothing varies."""
    total = np.square(variances).sum()
    return float(variances.sum() ** 2 / total) if total else 0.0


def entropy_rank(variances: Variances) -> float:
    """An effective rank that sees small variances more: exp(−Σ p ln p) with p = √λ / Σ√λ.

    (Roy & Vetterli 2007, "The effective rank".) k for k equal variances; 0 where nothing varies.
    """
    scales = np.sqrt(variances)
    shares = scales[scales > 0] / scales.sum() if scales.any() else scales[:0]
    return float(np.exp(-(shares * np.log(shares)).sum())) if len(shares) else 0.0


def first_share(variances: Variances) -> float:
    """The share of the variance in the first direction, λ₁/Σλ; 1 where nothing varies."""
    total = variances.sum()
    return float(variances.max() / total) if total else 1.0


def distinct_texts(texts: Iterable[str]) -> list[str]:
    """The first of all texts that have the same words, whatever their case, spaces and punctuation.

    Most tokenizers make nearly the same of such texts, and `kl_divergence` must not see a vector twice.
    """
    found: dict[tuple[str, ...] | str, str] = {}
    for text in texts:
        found.setdefault(tuple(re.findall(r"\w+", text.casefold())) or text, text)
    return list(found.values())


@dataclass(frozen=True)
class Profile:
    """One side's vectors in numbers; each is that of the function named.

    Attributes:
        rows: how many vectors.
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
    """Everything this module says about one sample.

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
    """The distance of every row of x to its k-th nearest row of y."""
    if x.shape[1] <= TREE_DIM:
        from scipy.spatial import KDTree

        return KDTree(y).query(x, k)[0].reshape(len(x), k)[:, -1]
    return _all_distances(x, y, k)


def _all_distances(x: Rows, y: Rows, k: int) -> Float[np.ndarray, " n"]:
    """The same by computing every distance, block by block.

    ‖a−b‖² = ‖a‖² + ‖b‖² − 2a·b finds the neighbours fast, but cancels where they are near; so the rows are
    centred first, and the distances of those found are computed once more, from the differences.
    """
    centre = y.mean(0)
    x, y = x - centre, y - centre
    squares = np.square(y).sum(1)
    found = np.empty(len(x))
    block = max(1, BLOCK_BYTES // (8 * len(y)))
    for start in range(0, len(x), block):
        rows = x[start : start + block]
        order = squares - 2 * (rows @ y.T)  # the row's own ‖a‖² changes no order
        nearest = np.argpartition(order, k - 1, axis=1)[:, :k] if k > 1 else order.argmin(1)[:, None]
        apart = np.stack([np.linalg.norm(rows - y[column], axis=1) for column in nearest.T], axis=1)
        found[start : start + block] = apart.max(1)
    return found
