"""Write the rows of one vector set of a segment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int

from counterpoint.errors import ShapeError
from counterpoint.index.arrays_writer import ArraysWriter
from counterpoint.index.centroid_lists import write_lists
from counterpoint.index.codec import CODECS
from counterpoint.index.counted import check_finite
from counterpoint.index.graph import write_graph
from counterpoint.index.inverted import write_postings
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import NOTHING, Kept
from counterpoint.index.piece import Piece
from counterpoint.index.residual import encode_residuals
from counterpoint.index.rows import opened_rows
from counterpoint.index.sketch import LEAST, write_sketch
from counterpoint.index.sorted_rows import write_sorted
from counterpoint.types import Document, Ragged, rows_of_sets

__all__ = ["RowsWriter"]

RAW = "raw"  # rows in float16, until the means of their words are known


@final
class RowsWriter(ArraysWriter):
    """Write encoded rows, with lengths and ids.

    Codecs of few bits first write a raw file, which is encoded once all words are counted. See
    `counterpoint.index.residual`.
    """

    def __init__(self, folder: Path, name: str, layout: SetLayout, kept: Kept = NOTHING):
        self.layout = layout
        self._codec = CODECS[layout.codec]
        arrays: dict[str, tuple[type[np.generic], tuple[int, ...]]] = (
            {RAW: (np.float16, (layout.dim,))} if self.layout.fitted else dict(self._codec.layout(layout.dim))
        )
        if not layout.pooled:
            arrays["lengths"] = (np.uint32, ())
        super().__init__(folder, name, arrays, self.layout.fitted if layout.ids else None, kept)

    def append(self, batch: Ragged, documents: Sequence[Document]) -> None:
        """Add the vectors of the next documents."""
        if self.layout.pooled and len(batch.values) != len(batch):
            raise ShapeError(f"{self.name!r} is pooled: {len(batch)} documents, {len(batch.values)} vectors")
        check_finite(batch.values, batch, documents, self.name)
        with np.errstate(over="ignore"):
            raw = self.layout.fitted
            encoded = {RAW: batch.values.astype(np.float16)} if raw else self._codec.encode(batch.values)
        fault = f"is too large for {self.layout.codec}; use the codec float32"
        for rows in encoded.values():
            check_finite(rows, batch, documents, self.name, fault)
        self._write(encoded, batch.offsets, batch.ids)

    def copy(self, piece: Piece, documents: Int[np.ndarray, " k"]) -> None:
        """Add some documents of another segment."""
        source = opened_rows(piece, self.name)
        where, offsets = rows_of_sets(source.offsets, documents)
        if self.layout.fitted:
            arrays = {RAW: source.values(where).astype(np.float16)}
        elif piece.layout.codec == self.layout.codec:
            arrays = source.stored(where)
        else:
            arrays = self._codec.encode(source.values(where))
        self._write(arrays, offsets, source.ids(where))

    def close(self) -> None:
        """Finish every file: encode raw rows, then write postings, lists, graph or sketch."""
        super().close()
        if self.layout.fitted:
            encode_residuals(self.folder, self.name, self.layout)
        if (self.folder / f"{self.name}.centroids.npy").exists():
            write_lists(self.folder, self.name)
        if self.layout.kind == "exact":
            write_postings(self.folder, self.name)
            if self.documents >= LEAST:
                write_sorted(self.folder, self.name, self.layout, self.documents)
        if self.layout.kind == "graph":
            write_graph(self.folder, self.name, self.layout, self.documents)
        if self.layout.kind == "dense" and self.documents >= LEAST:
            write_sketch(self.folder, self.name, self.layout, self.documents)
