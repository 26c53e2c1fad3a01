"""The centre of every document: what its rows have in common after subtracting their words' means.

    <set>.centres.npy        rotated, in 4 bits, one row per document
    <set>.centre_scales.npy  their scales, float16

The rows of one text differ from their words' means mostly in one direction, the subject of the text. A centre
accounts for a third of the remaining energy, and takes 2 to 4 bytes per row of its document.
"""

from __future__ import annotations

from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.coarse import Table

__all__ = ["Centres", "centres_of"]


@final
class Centres:
    """The centres of one set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, dim: int, documents: int):
        self._dim = dim
        self._values, self._scales = (
            files.array(f"{name}.{key}.npy") for key in ("centres", "centre_scales")
        )
        if len(self._values) != documents or len(self._scales) != documents:
            raise ArtifactError(f"the centres of {name!r} do not fit its documents", path=files.folder)

    def of(self, documents: Int[np.ndarray, " k"]) -> Table:
        """The centres of some documents."""
        return Table(self._values[documents], self._scales[documents], self._dim)


def centres_of(rows: Float[np.ndarray, "n d"], offsets: Int[np.ndarray, " b1"]) -> Table:
    """Centres of documents whose rows, minus their words' means, begin at `offsets`; 0 if it has none."""
    means, filled = np.zeros((len(offsets) - 1, rows.shape[1]), np.float32), np.flatnonzero(np.diff(offsets))
    if len(filled):
        means[filled] = np.add.reduceat(rows, offsets[filled], axis=0) / np.diff(offsets)[filled, None]
    return Table.of(means)
