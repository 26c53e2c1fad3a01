"""Merge rows of few bits from several segments, without encoding them again.

Segments that share a fit have the same means of words, or the same centroids. So their codes are copied. Rows
stored in 8 bits are encoded with the existing fit; the mean of a word without one is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.arrays_writer import ArraysWriter
from counterpoint.index.centroid_lists import write_lists
from counterpoint.index.counted import check_finite
from counterpoint.index.inverted import write_postings
from counterpoint.index.layout import SetLayout
from counterpoint.index.piece import Piece
from counterpoint.index.residual import coded, kinds_of
from counterpoint.index.rotation import rotation
from counterpoint.index.rows import opened_rows
from counterpoint.index.shared_fit import SharedCentroids, shared_fit
from counterpoint.types import Document, Ragged, rows_of_sets

__all__ = ["JoinedWriter"]

Arrays = dict[str, np.ndarray]


@final
class JoinedWriter(ArraysWriter):
    """Write rows of few bits, encoded with the fit that some pieces share.

    Raises:
        ArtifactError: the pieces have different fits.
    """

    def __init__(self, folder: Path, name: str, layout: SetLayout, fit: Sequence[Piece]):
        self.layout = layout
        self._base = shared_fit(fit, name, layout)
        kinds = {**kinds_of(layout), "lengths": (np.uint32, ())}
        if isinstance(self._base, SharedCentroids):
            kinds["clusters"] = (np.uint16, ())
        super().__init__(folder, name, kinds, True if layout.ids else None)

    def append(self, batch: Ragged, documents: Sequence[Document]) -> None:
        """Add the vectors of new documents."""
        check_finite(batch.values, batch, documents, self.name)
        self._write(self._coded(batch.values, batch.offsets, batch.ids), batch.offsets, batch.ids)

    def copy(self, piece: Piece, documents: Int[np.ndarray, " k"]) -> None:
        """Add some documents of another segment, with the same fit or in another codec."""
        source = opened_rows(piece, self.name)
        where, offsets = rows_of_sets(source.offsets, documents)
        ids = source.ids(where)
        if piece.layout.codec == self.layout.codec:
            arrays = {**source.stored(where), **source.stored_centres(documents)}
            if source.centroids is not None:
                arrays["clusters"] = source.centroids.places[where]
        else:
            arrays = self._coded(source.values(where), offsets, ids)
        self._write(arrays, offsets, ids)

    def _coded(
        self, values: Float[np.ndarray, "n d"], offsets: Int[np.ndarray, " b1"], ids: np.ndarray | None
    ) -> Arrays:
        rows, found = values @ rotation(self.layout.dim), {}
        if isinstance(self._base, SharedCentroids):
            places = self._base.nearest(rows)
            found["clusters"] = places.astype(np.uint16)
            rows -= self._base.decoded[places]
        elif self._base is not None and ids is not None:
            rows -= self._base.rows_of(ids)
        return coded(rows, offsets, self.layout) | found

    def close(self) -> None:
        """Finish every file."""
        super().close()
        if self._base is not None:
            self._base.write(self.folder, self.name)
        if isinstance(self._base, SharedCentroids):
            write_lists(self.folder, self.name)
        if self.layout.kind == "exact":
            write_postings(self.folder, self.name)
