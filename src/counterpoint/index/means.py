"""The mean vector of every frequent word: what rows are stored as differences from.

    <set>.means.npy        for each word with a mean: the rotated vector, int8
    <set>.mean_scales.npy  its scale, float16
    <set>.mean_ranks.npy   its place in <set>.vocabulary.npy, rising

A centroid whose number costs nothing: a row's word is stored anyway. The mean of a word that stands in many
documents takes more than half of its rows' energy, so fewer bits are left to store.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS, Integral
from counterpoint.index.rounded import Rounded

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels

__all__ = ["Means", "fit_means", "write_means"]

INT8 = cast(Integral, CODECS["int8"])


@final
class Means:
    """The table of one set of a segment; its last row is zero, for words without a mean."""

    def __init__(
        self,
        integers: Int[np.ndarray, "c1 d"],
        scales: Float[np.ndarray, " c1"],
        place_of_rank: Int[np.ndarray, " v"],
    ):
        self._integers, self._scales, self.place_of_rank = integers, scales, place_of_rank

    @staticmethod
    def open(files: CheckedFolder, name: str) -> Means:
        """Read what `write_means` wrote."""
        values, scales, ranks = (
            files.array(f"{name}.{kind}.npy").all() for kind in ("means", "mean_scales", "mean_ranks")
        )
        words = len(files.array(f"{name}.vocabulary.npy"))
        if not len(values) == len(scales) == len(ranks) or (len(ranks) and int(ranks.max()) >= words):
            raise ArtifactError(f"the means of {name!r} do not fit its vocabulary", path=files.folder)
        return Means.of(values, scales, ranks, words)

    @staticmethod
    def of(values: np.ndarray, scales: np.ndarray, ranks: np.ndarray, words: int) -> Means:
        """From the stored arrays, and the number of words in the vocabulary."""
        places = np.full(words, len(values), np.int64)
        places[ranks] = np.arange(len(values))
        integers = np.concatenate([values, np.zeros((1, values.shape[1]), np.int8)])
        return Means(integers, np.append(scales.astype(np.float32), np.float32(0)), places)

    def rows(self, places: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k d"]:
        """The rotated means at some places."""
        return self._integers[places] * self._scales[places][:, None]

    def products(self, query: Rounded) -> Float[np.ndarray, "m c1"]:
        """Inner products with rounded rows of a query, without these rows' scales."""
        return query.times(self._integers.astype(np.float32), 127) * self._scales

    def compiled_products(self, asked: Any, kernels: Kernels) -> Float[np.ndarray, "c1 lanes"]:
        """The same with a query as kernels take it, transposed, by a compiled kernel."""
        exact = kernels.products(asked, self._integers.view(np.uint8), (8, INT8.table))
        exact *= self._scales[:, None]
        return exact


def fit_means(sums: Float[np.ndarray, "c d"], counts: Int[np.ndarray, " c"]) -> dict[str, np.ndarray]:
    """The stored arrays for sums of rotated rows."""
    return INT8.encode((sums / counts[:, None]).astype(np.float32))


def write_means(folder: Path, name: str, arrays: dict[str, np.ndarray], ranks: Int[np.ndarray, " c"]) -> None:
    """Write the table of the words at some places of the vocabulary."""
    np.save(folder / f"{name}.means.npy", arrays["values"])
    np.save(folder / f"{name}.mean_scales.npy", arrays["scales"])
    np.save(folder / f"{name}.mean_ranks.npy", ranks.astype(np.uint32))
