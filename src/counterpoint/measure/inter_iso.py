"""InterIso: similarity of the rows of queries and documents (HIL, section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from counterpoint.errors import DataError, ShapeError
from counterpoint.measure.rows import Rows, checked_rows, unit_rows
from counterpoint.types import Ragged

__all__ = ["all_inter_iso", "delta_inter_iso", "inter_iso", "mean_rows", "pair_inter_iso", "split_inter_iso"]


def inter_iso(queries: Rows, documents: Rows, *, unit: bool = True) -> float:
    """InterIso of one query and one document: the mean of all inner products of their rows.

    HIL, equation 2. It equals the product of the two mean vectors. Rows are scaled to length 1 as in the
    paper; `unit=False` uses them unchanged.

    Raises:
        ShapeError: different numbers of components, or no row.
        DataError: a value is not finite.
    """
    left, right = checked_rows(queries), checked_rows(documents)
    if left.shape[1] != right.shape[1] or not len(left) or not len(right):
        raise ShapeError(f"expected rows of equal length, found arrays of {left.shape} and {right.shape}")
    if unit:
        left, right = unit_rows(left), unit_rows(right)
    return float(left.mean(0) @ right.mean(0))


def mean_rows(packed: Ragged, *, unit: bool = True) -> Float[np.ndarray, "b d"]:
    """The mean row of every text, after scaling rows to length 1; zeros for a text without rows.

    The product of two such means is the InterIso of their texts.
    """
    rows = checked_rows(packed.values)
    rows = unit_rows(rows) if unit else rows
    sums = np.zeros((len(packed), packed.dim))
    np.add.at(sums, np.repeat(np.arange(len(packed)), packed.lengths), rows)
    return sums / np.maximum(packed.lengths, 1)[:, None]


def pair_inter_iso(queries: Ragged, documents: Ragged, *, unit: bool = True) -> Float[np.ndarray, " b"]:
    """InterIso of the first query and the first document, the second and the second, and so on.

    HIL reports the mean. It is NaN for a pair in which a text has no row.

    Raises:
        ShapeError: different numbers of texts or components.
        DataError: a value is not finite.
    """
    if len(queries) != len(documents) or queries.dim != documents.dim:
        raise ShapeError(
            f"pairs need as many queries as documents, with equal components; found {len(queries)} of "
            f"{queries.dim} and {len(documents)} of {documents.dim}"
        )
    found = (mean_rows(queries, unit=unit) * mean_rows(documents, unit=unit)).sum(1)
    return np.where((queries.lengths > 0) & (documents.lengths > 0), found, np.nan)


def all_inter_iso(queries: Ragged, documents: Ragged, *, unit: bool = True) -> Float[np.ndarray, "q d"]:
    """InterIso of every query with every document; NaN if one of them has no row.

    Raises:
        ShapeError: different numbers of components.
        DataError: a value is not finite.
    """
    if queries.dim != documents.dim:
        raise ShapeError(f"queries have {queries.dim} components, documents {documents.dim}")
    found = mean_rows(queries, unit=unit) @ mean_rows(documents, unit=unit).T
    return np.where((queries.lengths > 0)[:, None] & (documents.lengths > 0), found, np.nan)


def split_inter_iso(
    values: Float[np.ndarray, "q d"], pairs: Sequence[tuple[int, int]]
) -> tuple[float | None, float | None]:
    """The mean over pairs that belong together, and over all others; None if there are none.

    Pairs are rows and columns of the values, which come from `all_inter_iso`.
    """
    together = np.zeros(np.shape(values), bool)
    for query, document in pairs:
        together[query, document] = True
    known = ~np.isnan(values)
    own, others = values[together & known], values[~together & known]
    return (float(own.mean()) if len(own) else None, float(others.mean()) if len(others) else None)


def delta_inter_iso(high: Float[np.ndarray, " b"], low: Float[np.ndarray, " b"]) -> float:
    """ΔInterIso: InterIso_H − InterIso_L, averaged over the pairs of texts that have both (HIL, section 3.2).

    Args:
        high: InterIso of the pairs in the space of the anisotropic module, from `pair_inter_iso`.
        low: InterIso of the same pairs in the space of the isotropic module.

    Raises:
        ShapeError: different numbers of pairs.
        DataError: no pair has both.
    """
    if np.shape(high) != np.shape(low):
        raise ShapeError(
            f"expected the same pairs in both spaces, found {np.shape(high)} and {np.shape(low)}"
        )
    apart = np.asarray(high, np.float64) - np.asarray(low, np.float64)
    if np.isnan(apart).all():
        raise DataError("no pair of texts has rows in both spaces")
    return float(np.nanmean(apart))
