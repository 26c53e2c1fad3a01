"""Multi-vector sets without ids; the first stage reads the lists of a few centroids.

For each query row, the documents in the lists of the nearest centroids collect these centroids' similarities.
Those with the highest sums are scored more closely, by the centroids of all their rows and by their own
centre. The best of these are candidates, which are then scored exactly, like all candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, final

import numpy as np
from jaxtyping import Float, Int, UInt8

from counterpoint.index import proposing
from counterpoint.index.best import EVERY, Among, best_among, best_of
from counterpoint.index.centroid_lists import CentroidLists
from counterpoint.index.centroids import Centroids
from counterpoint.index.codec import Integral, Rounded, rounded
from counterpoint.index.layout import SetLayout
from counterpoint.index.paths import Kernels
from counterpoint.index.piece import Piece
from counterpoint.index.rows import Rows
from counterpoint.index.store import PROBES, Asked, Everything, Look
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
        return _Near(self, queries, probes)

    def near(self, query: Asked, probes: int, k: int, among: Among) -> Int[np.ndarray, " c"]:
        """Approximately the best `k` of the allowed documents."""
        positions, scores = [], []
        for part, lists, start in zip(self.parts, self._lists, self._starts, strict=False):
            count = len(part.offsets) - 1
            mine_among = among.within(int(start), int(start) + count)
            if lists is None or part.centroids is None:
                allowed = mine_among.allowed
                found = np.arange(count) if allowed is None else np.flatnonzero(allowed)
                mine = self._table([query], part, found)[0]
            else:
                kernels = self._meter.kernels(len(part.centroids) * query.rows.size)
                table = _table_of(part, part.centroids, query, probes, kernels)
                found = _gathered(part, lists, table, SHORTLIST * k, mine_among)
                mine = _closer(part, part.centroids, table, found)
            positions.append(found + start)
            scores.append(mine)
        near, order = np.concatenate(positions), among.at(np.concatenate(positions))
        return near[best_of(np.concatenate(scores), k, matching=False, order=order)]


@final
class _Near(Look):
    """Candidates from the lists."""

    def __init__(self, store: ListsStore, queries: Sequence[Asked], probes: int):
        self._store, self._queries, self._probes = store, queries, probes

    def best(self, query: int, k: int, among: Among = EVERY) -> Int[np.ndarray, " c"]:
        """Approximately the best `k` of all segments together."""
        return self._store.near(self._queries[query], self._probes, k, among)


@dataclass(frozen=True)
class _Table:
    """A query and the centroids of a segment.

    Attributes:
        whole: the query's rows as integers.
        levels: of each centroid with each row; columns of zeros may follow.
        probes: for each row, the centroids whose lists are read, and the next best one.
        top: the similarity of the highest level.
        kernels: the compiled kernels; None for numpy.
    """

    whole: Rounded
    levels: UInt8[np.ndarray, "c lanes"]
    probes: Int[np.ndarray, "m p"]
    top: np.float32
    kernels: Kernels | None


def _table_of(part: Rows, centroids: Centroids, query: Asked, probes: int, kernels: Kernels | None) -> _Table:
    turn, probes = None if kernels is None else kernels.turn, min(probes + 1, len(centroids))
    whole = cast(Integral, part.integral).asked(query.rows, turn)
    if kernels is None:
        similarity = (centroids.products(whole) * whole.scales[:, None]).T
        top = similarity.max(initial=-np.inf)
        levels = proposing.levels_of(similarity, top)
        return _Table(whole, levels, proposing.probed(similarity, probes), top, None)
    asked = kernels.asked(whole)
    bases, scales = centroids.compiled_products(asked, kernels), asked[2]
    chosen, top = kernels.probed(bases, scales, len(query.rows), probes)
    return _Table(whole, kernels.levels_of(bases, scales, top), chosen, np.float32(top), kernels)


def _gathered(
    part: Rows, lists: CentroidLists, table: _Table, count: int, among: Among
) -> Int[np.ndarray, " s"]:
    """The documents with the highest sums, ascending by position."""
    documents = len(part.offsets) - 1
    if among.allowed is not None and among.allowed.sum() <= count:
        return np.flatnonzero(among.allowed)
    if count >= documents:
        return np.arange(documents)
    if table.kernels is None:
        found = proposing.gathered(table.levels, table.probes, lists.documents, documents)
    else:
        found = table.kernels.gathered(table.levels, table.probes, lists.arrays, documents)
    return np.sort(best_among(found.astype(np.float32), count, among, matching=False))


def _closer(
    part: Rows, centroids: Centroids, table: _Table, documents: Int[np.ndarray, " s"]
) -> Float[np.ndarray, " s"]:
    """Approximate scores: each row is replaced by its centroid plus its document's centre.

    The centre is the same for all rows of a document. So only its product with the sum of the query's rows is
    needed.
    """
    firsts, lasts = part.offsets[documents], part.offsets[documents + 1]
    interactions = proposing.interactions if table.kernels is None else table.kernels.interactions
    levels = interactions(table.levels, centroids.places.checked(firsts, lasts), firsts, lasts)
    scores = levels.astype(np.float32) * (table.top / np.float32(proposing.LEVELS))
    total = (table.whole.rows * table.whole.scales[:, None]).sum(axis=0, keepdims=True, dtype=np.float64)
    asked = rounded(total.astype(np.float32))
    return scores + part.centre_products(asked, documents, table.kernels)[0] * asked.scales[0]
