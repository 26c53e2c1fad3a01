"""Multi-vector sets without ids; the first stage reads the lists of a few centroids.

For each query row, the documents in the lists of the nearest centroids collect these centroids' similarities.
Those with the highest sums are scored more closely, by the centroids of all their rows and by their own
centre. The best of these are candidates, which are then scored exactly, like all candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index import proposing
from counterpoint.index.best import Among, best_among
from counterpoint.index.centroid_lists import CentroidLists
from counterpoint.index.layout import SetLayout
from counterpoint.index.levels import Levels, levels_of
from counterpoint.index.paths import multiplying
from counterpoint.index.piece import Piece
from counterpoint.index.rows import Rows
from counterpoint.index.store import PROBES, Approximate, Asked, Everything, Look
from counterpoint.index.stored_rows import RowsStore

__all__ = ["ListsStore"]

SHORTLIST = 16  # documents scored more closely per proposed candidate


@final
class ListsStore(RowsStore):
    """A multi-vector set without ids; in small segments every document is scored."""

    def __init__(self, name: str, layout: SetLayout, pieces: Sequence[Piece]):
        super().__init__(name, layout, pieces)
        self._lists = [
            None if part.centroids is None else CentroidLists(each.files, name, len(part.centroids))
            for each, part in zip(pieces, self.parts, strict=True)
        ]

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False, probes: int = PROBES) -> Look:
        """Read the lists of the `probes` nearest centroids of each query row; or score every document."""
        if exhaustive or not any(self._lists):
            return Everything(self.all_scores(queries), matching=False)
        return Approximate(queries, lambda query, k, among: self.near(query, probes, k, among))

    def near(self, query: Asked, probes: int, k: int, among: Among) -> Int[np.ndarray, " c"]:
        """Approximately the best `k` of the allowed documents."""

        def found(segment: int, mine: Among) -> tuple[Int[np.ndarray, " s"], Float[np.ndarray, " s"]] | None:
            part, lists = self.parts[segment], self._lists[segment]
            if lists is None or part.centroids is None:
                return None
            kernels = self._meter.kernels(multiplying(len(part.centroids) * self.layout.dim, len(query.rows)))
            levels = levels_of(part, part.centroids, query, min(probes + 1, len(part.centroids)), kernels)
            some = _gathered(part, lists, levels, SHORTLIST * k, mine)
            firsts, lasts = part.offsets[some], part.offsets[some + 1]
            scores = levels.scores(part.centroids.places.checked(firsts, lasts), firsts, lasts)
            return some, scores + levels.centre_scores(part, some)

        return self.nearest(query, k, among, found)


def _gathered(
    part: Rows, lists: CentroidLists, levels: Levels, count: int, among: Among
) -> Int[np.ndarray, " s"]:
    """The documents with the highest sums, ascending by position."""
    documents = len(part.offsets) - 1
    if among.allowed is not None and among.allowed.sum() <= count:
        return np.flatnonzero(among.allowed)
    if count >= documents:
        return np.arange(documents)
    if levels.kernels is None:
        found = proposing.gathered(levels.table, levels.nearest, lists.documents, documents)
    else:
        found = levels.kernels.gathered(levels.table, levels.nearest, lists.arrays, documents)
    return np.sort(best_among(found.astype(np.float32), count, among, matching=False))
