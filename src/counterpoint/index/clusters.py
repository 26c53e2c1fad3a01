"""k-means on two levels: centroids are grouped in cells, so that a row is compared only with near cells.

Comparing every row with 32,768 centroids would take longer than encoding it. With 256 cells, of which the
nearest two are searched, a row is compared with about 500 vectors. The squared distance to the centroid found
is about 2 % larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

__all__ = ["Clusters", "clusters_of", "in_cells"]

PROBED = 2  # cells searched for each row
ROUNDS = 6  # of Lloyd's algorithm
STARTS = 64  # rows per cell used to fit the cells
PIECE = 2**12  # rows compared with all of some centroids at a time
BLOCK = 2**16  # rows that are sorted by cell at a time


@final
@dataclass(frozen=True)
class Clusters:
    """Centroids, grouped by cell.

    Attributes:
        cells: the centre of each cell.
        centroids: of all cells.
        starts: where the centroids of each cell begin, and where the last end.
    """

    cells: Float[np.ndarray, "g d"]
    centroids: Float[np.ndarray, "k d"]
    starts: Int[np.ndarray, " g1"]

    def nearest(self, rows: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
        """For each row, the nearest centroid in its `PROBED` nearest cells; the first on ties."""
        pieces = [self._nearest(rows[at : at + BLOCK]) for at in range(0, len(rows), BLOCK)]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)

    def _nearest(self, rows: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
        near = _nearest(rows, self.cells, min(PROBED, len(self.cells)))
        owners = np.repeat(np.arange(len(rows)), near.shape[1])
        order = np.argsort(near.reshape(-1), kind="stable")
        cuts = np.searchsorted(near.reshape(-1)[order], np.arange(len(self.cells) + 1))
        best, found = np.full(len(rows), -np.inf, np.float32), np.zeros(len(rows), np.int64)
        for cell, (first, last) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            mine = owners[order[cuts[cell] : cuts[cell + 1]]]
            if not len(mine):
                continue
            closeness = _closeness(rows[mine], self.centroids[first:last])
            at = closeness.argmax(axis=1)
            value = closeness[np.arange(len(mine)), at]
            better = value > best[mine]
            best[mine[better]], found[mine[better]] = value[better], at[better] + first
        return found


def clusters_of(sample: Float[np.ndarray, "n d"], count: int) -> Clusters:
    """Fit about `count` centroids to a sample; each cell gets its share of them.

    Args:
        sample: at least one row; may be float16.
        count: of centroids; fewer if a cell has fewer rows. The result is deterministic on one machine.
    """
    rng, groups = np.random.default_rng(0), _groups(count)
    some = rng.permutation(len(sample))[: groups * STARTS]
    cells = _fitted(sample[np.sort(some)].astype(np.float32), groups, rng)
    pieces = [sample[at : at + PIECE].astype(np.float32) for at in range(0, len(sample), PIECE)]
    owners = np.concatenate([_nearest(piece, cells, 1)[:, 0] for piece in pieces])
    order, sizes = np.argsort(owners, kind="stable"), np.bincount(owners, minlength=len(cells))
    filled, members = np.flatnonzero(sizes), np.split(order, np.cumsum(sizes)[:-1])
    shares = [max(1, round(count * size / len(sample))) for size in sizes]
    found = [_fitted(sample[members[cell]].astype(np.float32), shares[cell], rng) for cell in filled]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in found])])
    return Clusters(cells[filled], np.concatenate(found), starts)


def in_cells(centroids: Float[np.ndarray, "k d"]) -> tuple[Clusters, Int[np.ndarray, " k"]]:
    """Group existing centroids, at least one, in cells; also returns for each its place among those given."""
    cells = _fitted(centroids, _groups(len(centroids)), np.random.default_rng(0))
    owners = _nearest(centroids, cells, 1)[:, 0]
    order, sizes = np.argsort(owners, kind="stable"), np.bincount(owners, minlength=len(cells))
    filled = np.flatnonzero(sizes)
    return Clusters(cells[filled], centroids[order], np.cumsum([0, *sizes[filled]])), order


def _groups(count: int) -> int:
    """Number of cells for some centroids: about the square root of their number."""
    return max(1, 2 ** (count.bit_length() // 2))


def _fitted(rows: Float[np.ndarray, "n d"], count: int, rng: np.random.Generator) -> Float[np.ndarray, "k d"]:
    """Lloyd's k-means from randomly drawn rows; a centroid without nearest rows is not moved."""
    centroids = rows[np.sort(rng.permutation(len(rows))[:count])]
    for _ in range(ROUNDS):
        owners = _nearest(rows, centroids, 1)[:, 0]
        order = np.argsort(owners, kind="stable")
        found, firsts, sizes = np.unique(owners[order], return_index=True, return_counts=True)
        centroids[found] = np.add.reduceat(rows[order], firsts, axis=0) / sizes[:, None].astype(np.float32)
    return centroids


def _nearest(
    rows: Float[np.ndarray, "n d"], centroids: Float[np.ndarray, "k d"], count: int
) -> Int[np.ndarray, "n count"]:
    """The `count` nearest centroids of each row, unordered; with `count` 1, the first on ties."""
    found = np.empty((len(rows), count), np.int64)
    for at in range(0, len(rows), PIECE):
        closeness = _closeness(rows[at : at + PIECE], centroids)
        if count == 1:
            found[at : at + PIECE, 0] = closeness.argmax(axis=1)
        else:
            found[at : at + PIECE] = np.argpartition(closeness, -count, axis=1)[:, -count:]
    return found


def _closeness(
    rows: Float[np.ndarray, "n d"], centroids: Float[np.ndarray, "k d"]
) -> Float[np.ndarray, "n k"]:
    """Larger for nearer: half of |row|² minus half of the squared distance."""
    products = rows @ centroids.T
    products -= (centroids * centroids).sum(axis=1) / 2
    return products
