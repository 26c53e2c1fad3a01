"""Merge rows of few bits from several segments, without encoding them again.

Segments that share a fit have the same means of words, or the same centroids. So their codes are copied. Rows
stored in 8 bits are encoded with the existing fit; the mean of a word without one is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.arrays_writer import ArraysWriter
from counterpoint.index.centroid_lists import write_lists
from counterpoint.index.clusters import Clusters, in_cells
from counterpoint.index.coarse import Table
from counterpoint.index.counted import check_finite
from counterpoint.index.inverted import write_postings
from counterpoint.index.layout import SetLayout
from counterpoint.index.means import write_means
from counterpoint.index.piece import Piece
from counterpoint.index.residual import coded, kinds_of
from counterpoint.index.rotation import rotation
from counterpoint.index.rows import opened_rows
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
        parts = [opened_rows(piece, name) for piece in fit]
        self._base: _Words | _Clusters | None = None
        if layout.ids:
            self._base = _Words(fit, name, layout.dim)
        elif any(part.centroids is not None for part in parts):
            self._base = _Clusters(fit, name, layout.dim)
        kinds = {**kinds_of(layout), "lengths": (np.uint32, ())}
        if isinstance(self._base, _Clusters):
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
        if isinstance(self._base, _Clusters):
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
        if isinstance(self._base, _Clusters):
            write_lists(self.folder, self.name)
        if self.layout.kind == "exact":
            write_postings(self.folder, self.name)


@final
class _Words:
    """The means of all words that have one in any of some pieces."""

    def __init__(self, fit: Sequence[Piece], name: str, dim: int):
        ids, without, tables = [], [], [Table.read(piece.files, name, "mean", dim) for piece in fit]
        for piece in fit:
            ranks = piece.files.array(f"{name}.mean_ranks.npy").all()
            vocabulary = piece.files.array(f"{name}.vocabulary.npy").all()
            ids.append(vocabulary[ranks])
            without.append(np.delete(vocabulary, ranks))
        whole = np.concatenate(ids).astype(np.int64)
        self._ids, first, places = np.unique(whole, return_index=True, return_inverse=True)
        values, scales = zip(*((each.values, each.scales) for each in tables), strict=True)
        every = Table(np.concatenate(values), np.concatenate(scales), dim)
        self._table = every.taken(first)
        if np.isin(self._ids, np.concatenate(without)).any() or not every.same(self._table.taken(places)):
            raise ArtifactError(
                f"the means of {name!r} differ between segments that share them; build the index again",
                path=fit[0].files.folder,
            )

    def rows_of(self, ids: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n d"]:
        """The rotated means of some words; zero for a word without one."""
        rows = np.zeros((len(ids), self._table.dim), np.float32)
        if len(self._ids):
            at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
            known = self._ids[at] == ids
            rows[known] = self._table.taken(at[known]).decoded()
        return rows

    def write(self, folder: Path, name: str) -> None:
        """Write the means of the words that a segment has."""
        vocabulary = np.load(folder / f"{name}.vocabulary.npy")
        kept = np.flatnonzero(np.isin(self._ids, vocabulary))
        write_means(folder, name, self._table.taken(kept), np.searchsorted(vocabulary, self._ids[kept]))


@final
class _Clusters:
    """The centroids that some pieces share."""

    def __init__(self, fit: Sequence[Piece], name: str, dim: int):
        self._table, *others = (Table.read(piece.files, name, "centroid", dim) for piece in fit)
        if not all(each.same(self._table) for each in others):
            raise ArtifactError(
                f"the centroids of {name!r} differ between segments that share them; build the index again",
                path=fit[0].files.folder,
            )
        self.decoded = self._table.decoded()  # still rotated

    def nearest(self, rows: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
        """The number of (approximately) the nearest centroid of each row, found as in a build."""
        clusters, places = self._cells
        return places[clusters.nearest(rows)]

    @cached_property
    def _cells(self) -> tuple[Clusters, Int[np.ndarray, " c"]]:
        return in_cells(self.decoded)  # lazily: only needed to encode rows

    def write(self, folder: Path, name: str) -> None:
        """Write all centroids."""
        self._table.write(folder, name, "centroid")
