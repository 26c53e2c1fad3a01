"""Base of the writers of vector sets: arrays that grow, and the ids of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from jaxtyping import Int

from counterpoint.index.counted import IdCounts
from counterpoint.index.npy import NOTHING, Kept, NpyWriter, Written
from counterpoint.index.store import VectorWriter

__all__ = ["ArraysWriter"]

Kinds = Mapping[str, tuple[type[np.generic], tuple[int, ...]]]
"""By array name, its dtype and the shape of a row."""


class ArraysWriter(VectorWriter):
    """A vector set as arrays `<set>.<name>.npy`; without `lengths` among them, each document has one row.

    Ids are stored as places in the vocabulary if `ranked`; it is None if there are none. `kept` are the valid
    parts of the files of an interrupted build.
    """

    def __init__(self, folder: Path, name: str, kinds: Kinds, ranked: bool | None, kept: Kept = NOTHING):
        self.folder, self.name, self.vectors = folder, name, 0
        self._counts: IdCounts | None = None
        self._writers: dict[str, NpyWriter] = {}
        with ExitStack() as files:
            for key, kind in kinds.items():
                self._writers[key] = NpyWriter(folder / f"{name}.{key}.npy", *kind, kept=kept)
                files.callback(self._writers[key].abandon)
            if ranked is not None:
                lengths = (
                    self._writers["lengths"].read() if "lengths" in kinds else np.ones(self.documents, int)
                )
                self._counts = IdCounts(folder, name, ranked=ranked, kept=(kept, lengths))
            files.pop_all()
        self._every = [*self._writers.values(), *([] if self._counts is None else [self._counts])]

    @property
    def documents(self) -> int:
        """Number of documents written."""
        counted = "lengths" if "lengths" in self._writers else next(iter(self._writers))
        return self._writers[counted].rows

    def _write(
        self, arrays: Mapping[str, np.ndarray], offsets: Int[np.ndarray, " b1"], ids: np.ndarray | None
    ) -> None:
        """Add rows of the next documents, whose rows begin at `offsets`."""
        for key, rows in arrays.items():
            self._writers[key].append(rows)
        if "lengths" in self._writers:
            self._writers["lengths"].append(np.diff(offsets).astype(np.uint32))
        if self._counts is not None and ids is not None:
            self._counts.append(ids, offsets)
        self.vectors += int(offsets[-1])

    def sync(self) -> dict[str, Written]:
        """Sync what was appended to disk."""
        counts = {} if self._counts is None else self._counts.sync()
        return {writer.path.name: writer.sync() for writer in self._writers.values()} | counts

    def close(self) -> None:
        """Finish the arrays and the vocabulary."""
        for each in self._every:
            each.close()

    def abandon(self) -> None:
        """Close every file as it is."""
        for each in self._every:
            each.abandon()
