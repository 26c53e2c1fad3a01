"""The mean vector of every word in several documents; rows are stored as differences from it.

    <set>.means.npy        rotated mean of each word that has one, in 4 bits
    <set>.mean_scales.npy  its scale, float16
    <set>.mean_ranks.npy   its word's place in <set>.vocabulary.npy, ascending

Means act as centroids whose numbers need no space, as each row's word is stored anyway. The mean accounts for
a third to a half of its rows' energy, so fewer bits are left to store.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index import coarse
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.rounded import Rounded

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels

__all__ = ["Means", "write_means"]


@final
class Means:
    """The means of one set of a segment; the last row is zero, for words without a mean.

    Args:
        arrays: the means, as encoded by `counterpoint.index.coarse`.
        ranks: the place of each mean's word in the vocabulary.
        words: number of words in the vocabulary.
        dim: components of a vector.

    Attributes:
        place_of_rank: for each word of the vocabulary, its row of the table.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], ranks: Int[np.ndarray, " c"], words: int, dim: int):
        self._arrays = {
            key: np.concatenate([array, np.zeros((1, *array.shape[1:]), array.dtype)])
            for key, array in arrays.items()
        }
        self._dim, self.place_of_rank = dim, np.full(words, len(ranks), np.int64)
        self.place_of_rank[ranks] = np.arange(len(ranks))

    @staticmethod
    def open(files: CheckedFolder, name: str, dim: int) -> Means:
        """Read what `write_means` wrote.

        Raises:
            ArtifactError: the means do not fit the vocabulary.
        """
        values, scales, ranks = (
            files.array(f"{name}.{kind}.npy").all() for kind in ("means", "mean_scales", "mean_ranks")
        )
        words = len(files.array(f"{name}.vocabulary.npy"))
        if not len(values) == len(scales) == len(ranks) or (len(ranks) and int(ranks.max()) >= words):
            raise ArtifactError(f"the means of {name!r} do not fit its vocabulary", path=files.folder)
        return Means({"values": values, "scales": scales}, ranks, words, dim)

    def rows(self, places: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k d"]:
        """The rotated means at some places."""
        return coarse.decoded({key: array[places] for key, array in self._arrays.items()}, self._dim)

    def products(self, query: Rounded) -> Float[np.ndarray, "m c1"]:
        """Inner products with rounded query rows, without the rows' scales."""
        return coarse.products(query, self._arrays)

    def compiled_products(
        self, asked: Any, kernels: Kernels, ranks: Int[np.ndarray, " r"] | None = None
    ) -> tuple[Float[np.ndarray, "c lanes"], Int[np.ndarray, " words"]]:
        """The same by a compiled kernel, transposed, and for each word its row of the result.

        Args:
            asked: the query in the kernels' form.
            kernels: the compiled kernels.
            ranks: the wanted words; None for all.
        """
        if ranks is None:
            return coarse.compiled_products(asked, self._arrays, kernels), self.place_of_rank
        wanted = np.zeros(len(self._arrays["scales"]), bool)
        wanted[self.place_of_rank[ranks]] = True
        chosen, places = np.flatnonzero(wanted), np.zeros(len(self.place_of_rank), np.int64)
        places[ranks] = (np.cumsum(wanted) - 1)[self.place_of_rank[ranks]]
        some = {key: array[chosen] for key, array in self._arrays.items()}
        return coarse.compiled_products(asked, some, kernels), places


def write_means(
    folder: Path, name: str, arrays: Mapping[str, np.ndarray], ranks: Int[np.ndarray, " c"]
) -> None:
    """Write the means of the words at some places of the vocabulary."""
    np.save(folder / f"{name}.means.npy", arrays["values"])
    np.save(folder / f"{name}.mean_scales.npy", arrays["scales"])
    np.save(folder / f"{name}.mean_ranks.npy", ranks.astype(np.uint32))
