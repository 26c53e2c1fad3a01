"""How a vector set is stored, and a stored one: memory-mapped arrays, checked when they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS, CodecName
from counterpoint.types import Ragged, rows_of_sets

__all__ = ["AnnName", "SetLayout", "VectorStore", "offsets_of"]

AnnName = Literal["hnsw"]


@dataclass(frozen=True)
class SetLayout:
    """How one vector set is stored.

    Attributes:
        dim: components of a vector.
        pooled: exactly one vector a document.
        codec: how a vector becomes bytes.
        ids: every vector has an id.
        inverted: there is an inverted index of the ids.
        ann: how a first stage finds its way, or None for a look at every vector.
        static: a vector is decided by its id; documents keep ids, each once, and the model has the vectors.
    """

    dim: int
    pooled: bool
    codec: CodecName
    ids: bool
    inverted: bool = False
    ann: AnnName | None = None
    static: bool = False


@final
class VectorStore:
    """One vector set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, layout: SetLayout, documents: int):
        self.layout = layout
        self._codec = CODECS[layout.codec]
        self._arrays = {key: files.array(f"{name}.{key}.npy") for key in self._codec.layout(layout.dim)}
        rows = len(self._arrays["values"])
        self.offsets: Int[np.ndarray, " b1"] = (
            np.arange(documents + 1, dtype=np.int64) if layout.pooled else offsets_of(files, name, documents)
        )
        if self.offsets[-1] != rows:
            raise ArtifactError(
                f"vector set {name!r} has {rows} rows for {documents} documents and does not fit its lengths",
                path=files.folder,
            )
        self._ids = files.array(f"{name}.ids.npy") if layout.ids else None

    def rows(self, start: int, end: int) -> Ragged:
        """The sets of the documents `start` to `end`, decoded to float32."""
        first, last = self.offsets[start], self.offsets[end]
        values = self.values(slice(first, last))
        ids = None if self._ids is None else np.asarray(self._ids[first:last], dtype=np.int64)
        return Ragged(values, self.offsets[start : end + 1] - first, ids)

    def take(self, documents: Int[np.ndarray, " k"]) -> Ragged:
        """The sets of some documents, in the order asked for, decoded to float32."""
        where, offsets = rows_of_sets(self.offsets, documents)
        ids = None if self._ids is None else np.asarray(self._ids[where], dtype=np.int64)
        return Ragged(self.values(where), offsets, ids)

    def values(self, rows: slice | Int[np.ndarray, " k"]) -> Float[np.ndarray, "k d"]:
        """Some vectors by their row numbers, decoded to float32."""
        return self._codec.decode({key: array[rows] for key, array in self._arrays.items()}, self.layout.dim)


def offsets_of(files: CheckedFolder, name: str, documents: int) -> Int[np.ndarray, " b1"]:
    """Where each document's vectors begin; indexes of format 1 store that itself."""
    old = f"{name}.offsets.npy"
    if old in files:
        offsets = files.array(old).all().astype(np.int64)
    else:
        lengths = files.array(f"{name}.lengths.npy").all()
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if len(offsets) != documents + 1:
        raise ArtifactError(
            f"vector set {name!r} has lengths of {len(offsets) - 1} documents, not {documents}",
            path=files.folder,
        )
    return offsets
