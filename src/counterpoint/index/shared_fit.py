"""The fit that several segments share: the means of words, or the centroids, of one vector set.

It encodes rows that were added later (`counterpoint.index.joining`), and measures how well it still fits them
(`counterpoint.index.drift`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.clusters import Clusters, in_cells
from counterpoint.index.coarse import Table
from counterpoint.index.layout import SetLayout
from counterpoint.index.means import write_means
from counterpoint.index.piece import Piece
from counterpoint.index.rows import opened_rows

__all__ = ["SharedCentroids", "SharedMeans", "shared_fit"]


def shared_fit(fit: Sequence[Piece], name: str, layout: SetLayout) -> SharedMeans | SharedCentroids | None:
    """The means or centroids that some pieces of few bits share; None for a set without either.

    Args:
        fit: the pieces, at least one.
        name: of the vector set.
        layout: of the set, as these pieces store it.

    Raises:
        ArtifactError: the pieces have different fits, or their files are damaged.
    """
    parts = [opened_rows(piece, name) for piece in fit]
    if layout.ids:
        return SharedMeans(fit, name, layout.dim)
    if any(part.centroids is not None for part in parts):
        return SharedCentroids(fit, name, layout.dim)
    return None


@final
class SharedMeans:
    """The means of all words that have one in any of some pieces.

    Args and errors as for `shared_fit`; `dim` is the number of components of a vector.
    """

    def __init__(self, fit: Sequence[Piece], name: str, dim: int):
        ids, without, tables = [], [], [Table.read(piece.files, name, "mean", dim) for piece in fit]
        for piece in fit:
            ranks = piece.files.array(f"{name}.mean_ranks.npy").all()
            vocabulary = piece.files.array(f"{name}.vocabulary.npy").all()
            ids.append(vocabulary[ranks])
            without.append(np.delete(vocabulary, ranks))
        whole = np.concatenate(ids).astype(np.int64)
        self._ids, first, places = np.unique(whole, return_index=True, return_inverse=True)
        values, scales = zip(*((each.values, each.scales) for each in tables), strict=True)
        every = Table(np.concatenate(values), np.concatenate(scales), dim)
        self._table = every.taken(first)
        if np.isin(self._ids, np.concatenate(without)).any() or not every.same(self._table.taken(places)):
            raise ArtifactError(
                f"the means of {name!r} differ between segments that share them; build the index again",
                path=fit[0].files.folder,
            )

    def rows_of(self, ids: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n d"]:
        """The rotated means of some words; zero for a word without one."""
        rows = np.zeros((len(ids), self._table.dim), np.float32)
        if len(self._ids):
            at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
            known = self._ids[at] == ids
            rows[known] = self._table.taken(at[known]).decoded()
        return rows

    def write(self, folder: Path, name: str) -> None:
        """Write the means of the words that a segment has."""
        vocabulary = np.load(folder / f"{name}.vocabulary.npy")
        kept = np.flatnonzero(np.isin(self._ids, vocabulary))
        write_means(folder, name, self._table.taken(kept), np.searchsorted(vocabulary, self._ids[kept]))


@final
class SharedCentroids:
    """The centroids that some pieces share. Args and errors as for `SharedMeans`.

    Attributes:
        decoded: the centroids, rotated.
    """

    def __init__(self, fit: Sequence[Piece], name: str, dim: int):
        self._table, *others = (Table.read(piece.files, name, "centroid", dim) for piece in fit)
        if not all(each.same(self._table) for each in others):
            raise ArtifactError(
                f"the centroids of {name!r} differ between segments that share them; build the index again",
                path=fit[0].files.folder,
            )
        self.decoded = self._table.decoded()

    def nearest(self, rows: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
        """The number of (approximately) the nearest centroid of each row, found as in a build."""
        clusters, places = self._cells
        return places[clusters.nearest(rows)]

    @cached_property
    def _cells(self) -> tuple[Clusters, Int[np.ndarray, " c"]]:
        return in_cells(self.decoded)  # lazily: only needed to encode rows

    def write(self, folder: Path, name: str) -> None:
        """Write all centroids."""
        self._table.write(folder, name, "centroid")
