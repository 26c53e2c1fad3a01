"""Token pooling: fewer vectors per document, by replacing the most similar ones by their mean.

Clavié, Chaffin and Adams 2024 ("Reducing the Footprint of Multi-Vector Retrieval with Minimal Performance
Impact via Token Pooling"): a document's vectors are clustered by Ward's method into a given share of their
number. There a cluster becomes its mean. Ours gives it the mean length of its vectors: the mean of different
unit vectors is shorter, so it would lose comparisons with vectors that stand alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ConfigError
from counterpoint.types import Ragged

if TYPE_CHECKING:
    from counterpoint.index.layout import SetLayout

__all__ = ["check_pool_factor", "factors_of", "token_pooled"]

LONGEST = 1024
"""Rows clustered together. Time and memory grow with the square, so longer documents are cut into pieces."""


def check_pool_factor(factor: float) -> None:
    """Check a factor.

    Raises:
        ConfigError: it is not a finite number from 1 up.
    """
    if not (isinstance(factor, int | float) and math.isfinite(factor) and factor >= 1):
        raise ConfigError(f"pool_factor must be a finite number from 1 up, found {factor!r}")


def factors_of(layouts: Mapping[str, SetLayout]) -> dict[str, float]:
    """The factor of each set that is pooled."""
    return {name: layout.pool for name, layout in layouts.items() if layout.pool > 1}


def token_pooled(documents: Ragged, factor: float) -> Ragged:
    """Keep about 1/`factor` of each document's vectors, at least one.

    A cluster takes the place and the id of the vector that is nearest to its mean; the others leave no row.
    """
    if factor <= 1:
        return documents
    values, kept, lengths = [documents.values[:0]], [np.zeros(0, np.int64)], []
    for start, end in zip(documents.offsets[:-1].tolist(), documents.offsets[1:].tolist(), strict=True):
        count = 0
        for first, last in _pieces(start, end):
            rows, nearest = _clustered(documents.values[first:last], math.ceil((last - first) / factor))
            values.append(rows)
            kept.append(nearest + first)
            count += len(rows)
        lengths.append(count)
    offsets, places = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), np.concatenate(kept)
    ids = None if documents.ids is None else documents.ids[places]
    return Ragged(np.concatenate(values), offsets, ids)


def _pieces(start: int, end: int) -> list[tuple[int, int]]:
    """Stretches of nearly the same length, none above `LONGEST`."""
    cuts = np.linspace(start, end, 1 + math.ceil((end - start) / LONGEST)).astype(int).tolist()
    return list(zip(cuts, cuts[1:], strict=False))


def _clustered(
    rows: Float[np.ndarray, "n d"], count: int
) -> tuple[Float[np.ndarray, "k d"], Int[np.ndarray, " k"]]:
    """At most `count` clusters of some rows, and for each the place of the row nearest to its mean."""
    if count >= len(rows):
        return rows, np.arange(len(rows))
    from scipy.cluster.hierarchy import fcluster, linkage

    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1)
    units = wide / np.where(lengths > 0, lengths, 1)[:, None]
    labels = fcluster(linkage(units, "ward"), count, "maxclust") - 1
    sizes = np.bincount(labels)
    sums, length = np.zeros((len(sizes), rows.shape[1])), np.bincount(labels, lengths) / sizes
    np.add.at(sums, labels, wide)
    norms = np.linalg.norm(sums, axis=1)
    means = sums * (length / np.where(norms > 0, norms, 1))[:, None]
    closeness = (units * means[labels]).sum(axis=1)
    order = np.lexsort((np.arange(len(rows)), -closeness, labels))  # the first on ties
    nearest = order[np.concatenate([[0], np.cumsum(sizes)[:-1]])]
    in_place = np.argsort(nearest)
    alone = sizes[in_place] == 1  # to the last bit as they were
    found = means[in_place].astype(rows.dtype)
    found[alone] = rows[nearest[in_place][alone]]
    return found, nearest[in_place]
