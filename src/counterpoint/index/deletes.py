"""Which documents of a segment are deleted.

    deletes/<name>/
      rows.npy            one bit per document of the segment, packed: 1 if it is deleted
      rows.copy.npy       the same, for a repair: no other file says which documents are deleted
      <set>.ids.npy       for each set with ids, the distinct ids of the deleted documents, ascending
      <set>.counts.npy    in how many of the deleted documents each of them occurs
      blocks.npy          checksums of all these, see `checked`

A segment never changes. A delete writes these files into a new folder, and the next manifest names it.
Document frequencies are those of the segment minus those here, so idf counts live documents only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Bool, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.manifest import SegmentEntry
from counterpoint.index.ours import mark, new_name

__all__ = ["BOTH", "Counts", "Deletes", "folders_for", "with_deletes", "write_deletes"]

Counts = tuple[Int[np.ndarray, " v"], Int[np.ndarray, " v"]]
"""Distinct ids, ascending, and in how many documents each occurs."""

ROWS = "rows.npy"
BOTH = (ROWS, "rows.copy.npy")


@final
class Deletes:
    """The deletes of a segment, read into memory.

    Args:
        files: as written by `write_deletes`.
        documents: how many the segment has.
        deleted: how many of these must be deleted.
        rows: the file that says which; a repair may have only the copy.

    Attributes:
        live: for every document, whether it is not deleted.
        rows: of the deleted documents, ascending.

    Raises:
        ArtifactError: the files are damaged, or belong to another segment.
    """

    def __init__(self, files: CheckedFolder, documents: int, deleted: int, rows: str = ROWS):
        self._files = files
        packed = files.array(rows).all()
        if packed.dtype != np.uint8 or packed.shape != (-(-documents // 8),):
            raise ArtifactError("the deletes do not fit this segment", path=files.folder)
        dead = np.unpackbits(packed, count=documents, bitorder="little").astype(bool)
        self.live: Bool[np.ndarray, " n"] = ~dead
        self.live.setflags(write=False)
        self.rows = np.flatnonzero(dead)
        if len(self.rows) != deleted:
            raise ArtifactError(
                f"{len(self.rows)} documents are deleted, but the manifest says {deleted}", path=files.folder
            )

    def counts(self, name: str) -> Counts:
        """The ids of a set in the deleted documents, and in how many of them each occurs."""
        ids, counts = (self._files.array(f"{name}.{kind}.npy").all() for kind in ("ids", "counts"))
        return ids, counts


def folders_for(folder: Path, entries: Sequence[SegmentEntry]) -> list[str]:
    """Make a new folder of the index for the deletes of each segment; all are synced at once."""
    names = [f"{entry.home}deletes/{new_name()}" for entry in entries]
    mark(*(folder / name for name in names))
    return names


def with_deletes(
    folder: Path,
    entry: SegmentEntry,
    live: Bool[np.ndarray, " n"],
    counts: Mapping[str, Counts],
    name: str | None = None,
) -> SegmentEntry:
    """Write the deletes of a segment into a folder of the index; return its entry with them.

    `name` is one of `folders_for`; by default the folder is made here.
    """
    if name is None:
        (name,) = folders_for(folder, [entry])
    write_deletes(folder / name, live, counts)
    return replace(entry, deletes=name, deleted=int((~live).sum()))


def write_deletes(
    folder: Path, live: Bool[np.ndarray, " n"], counts: Mapping[str, Counts] = MappingProxyType({})
) -> None:
    """Write which documents of a segment are deleted, and their `Counts` for each set with ids."""
    for name in BOTH:
        np.save(folder / name, np.packbits(~live, bitorder="little"))
    for name, (ids, frequencies) in counts.items():
        np.save(folder / f"{name}.ids.npy", ids.astype(np.uint32))
        np.save(folder / f"{name}.counts.npy", frequencies.astype(np.uint32))
