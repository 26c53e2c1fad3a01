"""Centroids of a set without ids: rows are stored as differences from them, and found by them.

    <set>.centroids.npy        rotated, in 4 bits
    <set>.centroid_scales.npy  their scales, float16
    <set>.clusters.npy         for each row, the place of its centroid (uint16)

They replace the means of words of a set with ids (`counterpoint.index.means`), but each row's cluster must be
stored. A set of few rows has none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.clusters import clusters_of
from counterpoint.index.coarse import Table
from counterpoint.index.codec import Rounded
from counterpoint.index.npy import NpyWriter
from counterpoint.index.rotation import rotation

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels

__all__ = ["LEAST_ROWS", "Centroids", "count_for", "write_centroids"]

LEAST_ROWS = 2**16  # smaller sets have no centroids, and all rows are scored
ROWS = 64  # of a set per centroid, so that the centroids take about a byte per row
MOST = 2**16  # centroids: what two bytes can number
SAMPLE = 32  # rows per centroid used for fitting
MOST_SAMPLED = 2**20  # rows: 256 MiB of 128 components
CHUNK = 2**16  # rows assigned at a time


@final
class Centroids:
    """The centroids of one set of a segment.

    Attributes:
        places: for each row, the place of its centroid.
    """

    def __init__(self, files: CheckedFolder, name: str, dim: int, rows: int):
        self._dim = dim
        self.places = files.array(f"{name}.clusters.npy")
        self._files = [files.array(f"{name}.{key}.npy") for key in ("centroids", "centroid_scales")]
        self._last: tuple[bytes, np.ndarray] = b"", np.zeros((0, 0), np.float32)
        if len(self.places) != rows or len(self._files[0]) != len(self._files[1]):
            raise ArtifactError(f"the centroids of {name!r} do not fit its rows", path=files.folder)

    def __len__(self) -> int:
        """Number of centroids."""
        return len(self._files[0])

    @cached_property
    def numbers(self) -> Int[np.ndarray, " c"]:
        """The row of the table for each place, which is the place itself."""
        return np.arange(len(self))

    @cached_property
    def _table(self) -> Table:
        return Table(self._files[0].all(), self._files[1].all(), self._dim)

    def of(self, where: slice | Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        """The places of the centroids of some rows."""
        return self.places[where].astype(np.int64)

    def rows(self, places: Int[np.ndarray, " k"]) -> Float[np.ndarray, "k d"]:
        """The rotated centroids at some places."""
        return self._table.taken(places).decoded()

    def products(
        self, query: Rounded, places: Int[np.ndarray, " k"] | None = None
    ) -> Float[np.ndarray, "m k"]:
        """Inner products with rounded query rows, without the rows' scales; of all centroids by default."""
        if places is not None:
            return self._table.taken(places).products(query)
        return self._kept(b"numpy" + query.rows.tobytes(), lambda: self._table.products(query))

    def compiled_products(self, asked: Any, kernels: Kernels) -> Float[np.ndarray, "c lanes"]:
        """The same by a compiled kernel, transposed; `asked` is the query in the kernels' form."""
        return self._kept(asked[0].tobytes(), lambda: self._table.compiled_products(asked, kernels))

    def _kept(self, query: bytes, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """The products with the last query, cached: the first stage and scoring both need them."""
        key, found = self._last
        if key != query:
            found = compute()
            found.setflags(write=False)
            self._last = query, found
        return found


def count_for(rows: int) -> int:
    """Number of centroids of a set: the largest power of two with `ROWS` rows each; 0 for few rows."""
    return 0 if rows < LEAST_ROWS else min(MOST, 2 ** (max(1, rows // ROWS).bit_length() - 1))


def write_centroids(folder: Path, name: str, raw: Float[np.ndarray, "n d"], count: int) -> None:
    """Fit centroids to a sample of the rows, and write the nearest one of each row.

    Memory is bounded by the sample and does not grow with the rows.
    """
    turn, most = rotation(raw.shape[1]), min(SAMPLE * count, MOST_SAMPLED)
    drawn = np.unique(np.random.default_rng(0).integers(len(raw), size=most))
    clusters = clusters_of(raw if most >= len(raw) else raw[drawn], count)
    Table.of(clusters.centroids @ turn).write(folder, name, "centroid")
    with NpyWriter(folder / f"{name}.clusters.npy", np.uint16) as writer:
        for at in range(0, len(raw), CHUNK):
            writer.append(clusters.nearest(raw[at : at + CHUNK].astype(np.float32)).astype(np.uint16))
