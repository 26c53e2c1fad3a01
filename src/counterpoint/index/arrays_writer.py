"""Base of the writers of rows: arrays that grow, and the ids of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from counterpoint.index.counted import IdCounts
from counterpoint.index.npy import NOTHING, Kept, NpyWriter, Written
from counterpoint.index.store import VectorWriter

__all__ = ["ArraysWriter"]

Kinds = Mapping[str, tuple[type[np.generic], tuple[int, ...]]]
"""By array name, its dtype and the shape of a row."""


class ArraysWriter(VectorWriter):
    """A vector set as arrays `<set>.<name>.npy`; subclasses count the ids.

    Args:
        folder: of the segment.
        name: of the set.
        kinds: of the arrays.
        kept: valid parts of the files of an interrupted build.
    """

    def __init__(self, folder: Path, name: str, kinds: Kinds, kept: Kept = NOTHING):
        self.folder, self.name, self.vectors = folder, name, 0
        self._counts: IdCounts | None = None
        self._writers: dict[str, NpyWriter] = {}
        with ExitStack() as files:
            for key, kind in kinds.items():
                self._writers[key] = NpyWriter(folder / f"{name}.{key}.npy", *kind, kept=kept)
                files.callback(self._writers[key].abandon)
            files.pop_all()

    def sync(self) -> dict[str, Written]:
        """Sync what was appended to disk."""
        counts = {} if self._counts is None else self._counts.sync()
        return {writer.path.name: writer.sync() for writer in self._writers.values()} | counts

    def close(self) -> None:
        """Finish the arrays and the vocabulary."""
        for writer in self._writers.values():
            writer.close()
        if self._counts is not None:
            self._counts.close()

    def abandon(self) -> None:
        """Close every file as it is."""
        for writer in self._writers.values():
            writer.abandon()
        if self._counts is not None:
            self._counts.abandon()
