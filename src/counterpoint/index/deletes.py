"""Which documents of a segment are deleted.

    deletes/<name>/
      rows.npy            a bit for each document of the segment, packed: 1 where it is deleted
      rows.copy.npy       the same, for a repair: nothing else says which documents are deleted
      <set>.ids.npy       for each set with ids, those of the deleted documents, rising
      <set>.counts.npy    in how many of the deleted documents each of them stands
      blocks.npy          checksums of all these, see `checked`

A segment never changes. What a delete writes is this, in a new folder, and the next manifest names it.
Document frequencies are those of the segment less what is here, so that idf is that of the live documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Bool, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder

__all__ = ["BOTH", "Counts", "Deletes", "write_deletes"]

Counts = tuple[Int[np.ndarray, " v"], Int[np.ndarray, " v"]]
"""Distinct ids, rising, and in how many documents each stands."""

ROWS = "rows.npy"
BOTH = (ROWS, "rows.copy.npy")


@final
class Deletes:
    """The deletes of a segment, read whole.

    Args:
        files: as `write_deletes` wrote them.
        documents: how many the segment has.
        deleted: how many of these must be deleted.
        rows: the file that says which; a repair may have only the copy.

    Attributes:
        live: for every document whether it is not deleted.
        rows: of the deleted documents, rising.

    Raises:
        ArtifactError: the files are damaged, or of another segment.
    """

    def __init__(self, files: CheckedFolder, documents: int, deleted: int, rows: str = ROWS):
        self._files = files
        packed = files.array(rows).all()
        if packed.dtype != np.uint8 or packed.shape != (-(-documents // 8),):
            raise ArtifactError("the deletes are not of this segment", path=files.folder)
        dead = np.unpackbits(packed, count=documents, bitorder="little").astype(bool)
        self.live: Bool[np.ndarray, " n"] = ~dead
        self.live.setflags(write=False)
        self.rows = np.flatnonzero(dead)
        if len(self.rows) != deleted:
            raise ArtifactError(
                f"{len(self.rows)} documents are deleted, the manifest says {deleted}", path=files.folder
            )

    def counts(self, name: str) -> Counts:
        """What the deleted documents had of a set's ids."""
        ids, counts = (self._files.array(f"{name}.{kind}.npy").all() for kind in ("ids", "counts"))
        return ids, counts


def write_deletes(
    folder: Path, live: Bool[np.ndarray, " n"], counts: Mapping[str, Counts] = MappingProxyType({})
) -> None:
    """Write which documents of a segment are deleted into a folder, and what these have of each set's ids."""
    for name in BOTH:
        np.save(folder / name, np.packbits(~live, bitorder="little"))
    for name, (ids, frequencies) in counts.items():
        np.save(folder / f"{name}.ids.npy", ids.astype(np.uint32))
        np.save(folder / f"{name}.counts.npy", frequencies.astype(np.uint32))
