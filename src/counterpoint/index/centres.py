"""The centre of every document: what its rows have in common after subtracting their words' means.

    <set>.centres.npy        rotated, in 4 bits, one row per document
    <set>.centre_scales.npy  their scales, float16

The rows of one text differ from their words' means mostly in one direction, the subject of the text. A centre
accounts for a third of the remaining energy, and takes 2 to 4 bytes per row of its document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index import coarse
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.rounded import Rounded

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels

__all__ = ["Centres", "centres_of"]


@final
class Centres:
    """The centres of one set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, dim: int, documents: int):
        self._dim = dim
        self._arrays = {
            key: files.array(f"{name}.{file}.npy")
            for key, file in (("values", "centres"), ("scales", "centre_scales"))
        }
        if any(len(array) != documents for array in self._arrays.values()):
            raise ArtifactError(f"the centres of {name!r} do not fit its documents", path=files.folder)

    def rows(self, documents: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k d"]:
        """The rotated centres of some documents."""
        return coarse.decoded(self.stored(documents), self._dim)

    def products(self, query: Rounded, documents: Int[np.ndarray, " k"]) -> Float[np.ndarray, "m k"]:
        """Inner products with rounded query rows, without the rows' scales."""
        return coarse.products(query, self.stored(documents))

    def compiled_products(
        self, asked: Any, documents: Int[np.ndarray, " k"], kernels: Kernels
    ) -> Float[np.ndarray, "k lanes"]:
        """The same by a compiled kernel, transposed; `asked` is the query in the kernels' form."""
        return coarse.compiled_products(asked, self.stored(documents), kernels)

    def stored(self, documents: Int[np.ndarray, " k"]) -> Mapping[str, np.ndarray]:
        """The stored centres of some documents, by array."""
        return {key: array[documents] for key, array in self._arrays.items()}


def centres_of(
    rows: Float[np.ndarray, "n d"], offsets: Int[np.ndarray, " b1"]
) -> tuple[Mapping[str, np.ndarray], Float[np.ndarray, "b d"]]:
    """The stored arrays of some documents' centres, and the centres decoded from them.

    Args:
        rows: rotated, minus their words' means.
        offsets: where the rows of each document begin. A document without rows has the centre 0.
    """
    means, filled = np.zeros((len(offsets) - 1, rows.shape[1]), np.float32), np.flatnonzero(np.diff(offsets))
    if len(filled):
        means[filled] = np.add.reduceat(rows, offsets[filled], axis=0) / np.diff(offsets)[filled, None]
    arrays = coarse.coded(means)
    return arrays, coarse.decoded(arrays, rows.shape[1])
