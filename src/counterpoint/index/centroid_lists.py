"""For every centroid of a set, the list of documents with a row in its cluster.

<set>.lists.npy        the lists, packed (`counterpoint.index.packing`): the first document, then for each
                       further one the number of documents between it and the previous one
<set>.list_counts.npy  number of documents in each list
<set>.list_ends.npy    where each list ends in <set>.lists.npy
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int, Integer

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.kernels import runs_of
from counterpoint.index.npy import NpyWriter, ends_type, open_npy
from counterpoint.index.packing import pack, unpack

__all__ = ["CentroidLists", "write_lists"]

CHUNK = 2**22  # rows read at a time
HELD = 2**24  # pairs of a centroid and a document sorted at a time; bounds the memory of a build


@final
class CentroidLists:
    """The lists of one set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, centroids: int):
        self._folder, self._name = files.folder, name
        self._files = [files.array(f"{name}.{kind}.npy") for kind in ("lists", "list_counts", "list_ends")]
        if any(len(each) != centroids for each in self._files[1:]):
            raise ArtifactError(f"the lists of {name!r} do not fit its centroids", path=files.folder)

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All lists as bytes, the number of documents of each, and where each begins and the last ends."""
        packed, counts, ends = (each.all() for each in self._files)
        starts = np.concatenate([[0], ends.astype(np.int64)])
        if starts[-1] != len(packed) or (np.diff(starts) < 0).any():
            raise ArtifactError(f"the lists of {self._name!r} do not fit their lengths", path=self._folder)
        return packed, counts.astype(np.int64), starts

    def documents(self, centroid: int) -> Int[np.ndarray, " k"]:
        """The documents of one list, ascending."""
        packed, counts, starts = self.arrays
        if not counts[centroid]:
            return np.zeros(0, np.int64)
        try:
            gaps, _ = unpack(packed[starts[centroid] : starts[centroid + 1]], int(counts[centroid]))
        except ValueError as error:
            raise ArtifactError(f"the lists of {self._name!r}: {error}", path=self._folder) from error
        return np.cumsum(gaps + 1) - 1


def write_lists(folder: Path, name: str) -> None:
    """Write the lists of a set whose centroids, clusters and lengths are complete."""
    centroids = len(open_npy(folder / f"{name}.centroids.npy"))
    clusters = open_npy(folder / f"{name}.clusters.npy")
    offsets = np.concatenate([[0], np.cumsum(np.load(folder / f"{name}.lengths.npy"), dtype=np.int64)])
    sizes = np.zeros(centroids, np.int64)
    for at in range(0, len(clusters), CHUNK):
        sizes += np.bincount(clusters[at : at + CHUNK], minlength=centroids)
    counts, ends = np.zeros(centroids, np.uint32), np.zeros(centroids, np.int64)
    written = 0
    with NpyWriter(folder / f"{name}.lists.npy", np.uint8) as writer:
        for first, last in runs_of(np.concatenate([[0], np.cumsum(sizes)]), HELD):
            of_list, documents = _pairs(clusters, offsets, first, last)
            some, begin, mine = np.unique(of_list, return_index=True, return_counts=True)
            if len(some):
                gaps = np.diff(documents, prepend=-1) - 1
                gaps[begin] = documents[begin]
                packed, lengths = pack(gaps, mine)
                writer.append(packed)
                counts[some], ends[some] = mine, lengths
                written += len(packed)
    np.save(folder / f"{name}.list_counts.npy", counts)
    np.save(folder / f"{name}.list_ends.npy", np.cumsum(ends).astype(ends_type(written)))


def _pairs(
    clusters: Integer[np.ndarray, " n"], offsets: Int[np.ndarray, " b1"], first: int, last: int
) -> tuple[Int[np.ndarray, " p"], Int[np.ndarray, " p"]]:
    """The entries of the lists from `first` to before `last`, in order: centroid and document of each."""
    found = [np.zeros(0, np.uint64)]
    for at in range(0, len(clusters), CHUNK):
        some = clusters[at : at + CHUNK]
        rows = np.flatnonzero((some >= first) & (some < last))
        owners = np.searchsorted(offsets, rows + at, side="right") - 1
        found.append(some[rows].astype(np.uint64) << np.uint64(40) | owners.astype(np.uint64))
    pairs = np.unique(np.concatenate(found))
    return (pairs >> np.uint64(40)).astype(np.int64), (pairs & np.uint64(2**40 - 1)).astype(np.int64)
