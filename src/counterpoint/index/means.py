"""The mean vector of every word in several documents; rows are stored as differences from it.

    <set>.means.npy        rotated mean of each word that has one, in 4 bits
    <set>.mean_scales.npy  its scale, float16
    <set>.mean_ranks.npy   its word's place in <set>.vocabulary.npy, ascending

Means act as centroids whose numbers need no space, as each row's word is stored anyway. The mean accounts for
a third to a half of its rows' energy, so fewer bits are left to store.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int, UInt8

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.coarse import Table
from counterpoint.index.codec import Rounded

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels

__all__ = ["Means", "write_means"]


@final
class Means:
    """The means of one set of a segment; the last row is zero, for words without a mean.

    Args:
        means: rotated.
        ranks: the place of each mean's word in the vocabulary.
        words: number of words in the vocabulary.

    Attributes:
        place_of_rank: for each word of the vocabulary, its row of the table.
    """

    def __init__(self, means: Table, ranks: Int[np.ndarray, " c"], words: int):
        values, scales = np.pad(means.values, ((0, 1), (0, 0))), np.pad(means.scales, (0, 1))
        self._table = Table(values, scales, means.dim)
        self.place_of_rank = np.full(words, len(ranks), np.int64)
        self.place_of_rank[ranks] = np.arange(len(ranks))

    @staticmethod
    def open(files: CheckedFolder, name: str, dim: int) -> Means:
        """Read what `write_means` wrote.

        Raises:
            ArtifactError: the means do not fit the vocabulary.
        """
        means, ranks = Table.read(files, name, "mean", dim), files.array(f"{name}.mean_ranks.npy").all()
        words = len(files.array(f"{name}.vocabulary.npy"))
        fit = len(means.values) == len(means.scales) == len(ranks)
        if not fit or (len(ranks) and int(ranks.max()) >= words):
            raise ArtifactError(f"the means of {name!r} do not fit its vocabulary", path=files.folder)
        return Means(means, ranks, words)

    def rows(self, places: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k d"]:
        """The rotated means at some places."""
        return self._table.taken(places).decoded()

    def products(
        self, query: Rounded, places: Int[np.ndarray, " k"] | None = None
    ) -> Float[np.ndarray, "m k"]:
        """Inner products with rounded query rows, without the rows' scales; of all means by default."""
        return (self._table if places is None else self._table.taken(places)).products(query)

    def compiled_products(self, asked: Any, kernels: Kernels) -> Float[np.ndarray, "c lanes"]:
        """The same by a compiled kernel, transposed; `asked` is the query in the kernels' form."""
        return self._table.compiled_products(asked, kernels)

    def compiled_some(
        self,
        asked: Any,
        kernels: Kernels,
        words: UInt8[np.ndarray, "r b"],
        documents: tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]],
    ) -> Float[np.ndarray, "c lanes"]:
        """The same with the means of some documents' words alone; other rows of the result are not set.

        Args:
            asked: the query.
            kernels: the kernels.
            words: for every row of the set, its word's place in the vocabulary, as bytes.
            documents: where the rows of each begin and end.
        """
        return self._table.compiled_some(asked, kernels, words, (self.place_of_rank, *documents))


def write_means(folder: Path, name: str, means: Table, ranks: Int[np.ndarray, " c"]) -> None:
    """Write the means of the words at some places of the vocabulary."""
    means.write(folder, name, "mean")
    np.save(folder / f"{name}.mean_ranks.npy", ranks.astype(np.uint32))
