"""What documents score if each row is replaced by its centroid, or by the mean of its word.

Similarities of the query's rows with all centroids or means are computed once, in 255 levels. A document is
then scored by one byte per row of the query, and only a few documents by their own vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, final

import numpy as np
from jaxtyping import Float, Int, Integer, UInt8

from counterpoint.index import proposing
from counterpoint.index.centroids import Centroids
from counterpoint.index.codec import Integral, Rounded, rounded
from counterpoint.index.means import Means
from counterpoint.index.paths import Kernels
from counterpoint.index.rows import Rows
from counterpoint.index.store import Asked

__all__ = ["Levels", "levels_of"]


@final
@dataclass(frozen=True)
class Levels:
    """A query and the centroids or means of a segment.

    Attributes:
        whole: the query's rows as integers.
        table: the level of each centroid or mean with each row; columns of zeros may follow.
        nearest: for each row, the most similar ones, best first.
        top: the similarity of the highest level.
        kernels: the compiled kernels; None for numpy.
    """

    whole: Rounded
    table: UInt8[np.ndarray, "c lanes"]
    nearest: Int[np.ndarray, "m p"]
    top: np.float32
    kernels: Kernels | None

    def scores(
        self, places: Integer[np.ndarray, " r"], firsts: Int[np.ndarray, " k"], lasts: Int[np.ndarray, " k"]
    ) -> Float[np.ndarray, " k"]:
        """Approximate MaxSim with some documents; `places` are those of all rows in the table."""
        interactions = proposing.interactions if self.kernels is None else self.kernels.interactions
        levels = interactions(self.table, places, firsts, lasts)
        # Without query rows there is no highest similarity, and all levels are 0.
        return levels.astype(np.float32) * (max(self.top, np.float32(0)) / np.float32(proposing.LEVELS))

    def centre_scores(self, part: Rows, documents: Int[np.ndarray, " s"]) -> Float[np.ndarray, " s"]:
        """What the documents' centres add.

        The centre is the same for all rows of a document. So only its product with the sum of the query's
        rows is needed.
        """
        total = (self.whole.rows * self.whole.scales[:, None]).sum(axis=0, keepdims=True, dtype=np.float64)
        asked = rounded(total.astype(np.float32))
        return part.centre_products(asked, documents, self.kernels)[0] * asked.scales[0]


def levels_of(
    part: Rows, bases: Means | Centroids, query: Asked, count: int, kernels: Kernels | None
) -> Levels:
    """The levels of all centroids or means of a segment, and the `count` nearest of each query row."""
    whole = cast(Integral, part.integral).asked(query.rows, None if kernels is None else kernels.turn)
    if kernels is None:
        similarity = (bases.products(whole) * whole.scales[:, None]).T
        top = similarity.max(initial=-np.inf)
        table = proposing.levels_of(similarity, top)
        return Levels(whole, table, proposing.probed(similarity, count), top, None)
    asked = kernels.asked(whole)
    found, scales = bases.compiled_products(asked, kernels), asked[2]
    nearest, top = kernels.probed(found, scales, len(query.rows), count)
    return Levels(whole, kernels.levels_of(found, scales, top), nearest, np.float32(top), kernels)
