"""The distinct ids of a segment's documents, and postings made from them in memory."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.types import rows_of_sets

__all__ = ["Block", "StaticIds"]

BLOCK = 2**16  # documents per block of postings: numbers fit two bytes, maxima fit a CPU cache


@final
class StaticIds:
    """The distinct ids of a segment's documents in one static set, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, offsets: Int[np.ndarray, " b1"]):
        self.offsets = offsets
        self._vocabulary = files.array(f"{name}.vocabulary.npy")
        self._frequencies = files.array(f"{name}.frequencies.npy")
        self.ranks = files.array(f"{name}.ranks.npy")
        if self.offsets[-1] != len(self.ranks):
            raise ArtifactError(f"the ids of {name!r} do not fit its lengths", path=files.folder)

    @property
    def vocabulary(self) -> Int[np.ndarray, " v"]:
        """The distinct ids, ascending."""
        return self._vocabulary.all()

    @property
    def frequencies(self) -> Int[np.ndarray, " v"]:
        """The document frequency of each id."""
        return self._frequencies.all()

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The inverted index, made at first use: two bytes per id in memory, none on disk."""
        ends = [*range(0, len(self.offsets) - 1, BLOCK), len(self.offsets) - 1]
        return tuple(
            Block(
                self.ranks[self.offsets[start] : self.offsets[end]],
                self.offsets[start : end + 1] - self.offsets[start],
                len(self._vocabulary),
            )
            for start, end in zip(ends, ends[1:], strict=False)
        )


@final
class Block:
    """The postings of some documents: for each id, the documents that have it.

    Args:
        ranks: of their ids, one document after the other.
        offsets: where each document's ids begin.
        size: number of ids in the vocabulary.
    """

    def __init__(self, ranks: Int[np.ndarray, " n"], offsets: Int[np.ndarray, " b1"], size: int):
        self.ranks, self.offsets = ranks, offsets
        self.frequencies = np.bincount(ranks, minlength=size)
        self._starts = np.cumsum(self.frequencies) - self.frequencies
        owners = np.repeat(np.arange(len(offsets) - 1, dtype=np.uint16), np.diff(offsets))
        self._postings = owners[np.argsort(ranks, kind="stable")]

    def best(
        self, similarity: Float[np.ndarray, " v"], visited: Int[np.ndarray, " k"], left: float | None
    ) -> Float[np.ndarray, " b"]:
        """The highest similarity among each document's ids; −inf for a document without ids.

        Args:
            similarity: of each id of the vocabulary.
            visited: the ids with the highest similarity; their postings are read.
            left: the similarity of all other ids if they share one; None to look them up.
        """
        best = np.full(len(self.offsets) - 1, -np.inf, np.float32)
        counts = self.frequencies[visited]
        ends = np.cumsum(counts)
        where = np.arange(counts.sum()) + np.repeat(self._starts[visited] - (ends - counts), counts)
        np.maximum.at(best, self._postings[where], np.repeat(similarity[visited], counts))
        missed = np.flatnonzero(np.isneginf(best) & (np.diff(self.offsets) > 0))
        best[missed] = self._looked_up(similarity, missed) if left is None else left
        return best

    def _looked_up(
        self, similarity: Float[np.ndarray, " v"], documents: Int[np.ndarray, " m"]
    ) -> Float[np.ndarray, " m"]:
        where, offsets = rows_of_sets(self.offsets, documents)
        if not len(documents):
            return np.zeros(0, np.float32)
        return np.maximum.reduceat(similarity[self.ranks[where]], offsets[:-1])
