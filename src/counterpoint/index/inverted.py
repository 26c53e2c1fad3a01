"""The inverted index of a vector set's ids: the rows that stand for a word, without a look at any other.

    <set>.postings.npy   row numbers, those of one id side by side and rising
    <set>.starts.npy     where the rows of each id in <set>.vocabulary.npy begin, and where the last end

A posting is a row number and nothing else: what the row holds is in the set's values, and whose it is follows
from the number of rows of each document.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.npy import open_npy
from counterpoint.index.store import Asked

if TYPE_CHECKING:
    from counterpoint.index.rows import Rows

__all__ = ["Postings", "write_postings"]

CHUNK = 2**22  # rows sorted at a time; bounds the memory of a build


def write_postings(folder: Path, name: str) -> None:
    """Write the postings of a set whose ids and vocabulary are complete.

    A counting sort, chunk by chunk: memory grows with the number of distinct ids, not with that of rows.
    """
    ranked = (folder / f"{name}.ranks.npy").exists()
    ids = open_npy(folder / f"{name}.{'ranks' if ranked else 'ids'}.npy")
    vocabulary = np.asarray(open_npy(folder / f"{name}.vocabulary.npy"))
    chunks = range(0, len(ids), CHUNK)
    counts = np.zeros(len(vocabulary), np.int64)
    for at in chunks:
        ranks = ids[at : at + CHUNK] if ranked else np.searchsorted(vocabulary, ids[at : at + CHUNK])
        counts += np.bincount(ranks, minlength=len(vocabulary))
    starts = np.concatenate([[0], np.cumsum(counts)])
    dtype = np.uint32 if len(ids) < 2**32 else np.uint64
    np.save(folder / f"{name}.starts.npy", starts.astype(dtype))
    path, free = folder / f"{name}.postings.npy", starts[:-1].copy()
    if not len(ids):  # an empty file cannot be mapped
        np.save(path, np.zeros(0, dtype))
        return
    postings = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(len(ids),))
    _reserve(path)
    for at in chunks:
        ranks = ids[at : at + CHUNK] if ranked else np.searchsorted(vocabulary, ids[at : at + CHUNK])
        order = np.argsort(ranks, kind="stable")
        found, first, lengths = np.unique(ranks[order], return_index=True, return_counts=True)
        within = np.arange(len(order)) - np.repeat(first, lengths)
        postings[np.repeat(free[found], lengths) + within] = order + at
        free[found] += lengths
    postings.flush()


def _reserve(path: Path) -> None:
    """Take the room of a file on the disk: a mapped file that finds none is killed, not told.

    Raises:
        OSError: there is not enough.
    """
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


@final
class Postings:
    """The inverted index of one set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, rows: Rows):
        self._store = rows
        self._vocabulary = files.array(f"{name}.vocabulary.npy")
        self._starts = files.array(f"{name}.starts.npy")
        self._rows = files.array(f"{name}.postings.npy")
        if len(self._starts) != len(self._vocabulary) + 1 or self._starts[-1:] != len(self._rows):
            raise ArtifactError(f"the postings of {name!r} do not fit its vocabulary", path=files.folder)

    def rows_of(self, word: int) -> Int[np.ndarray, " p"]:
        """The rows that stand for a word, rising; none for a word that no document has."""
        # A number of the vocabulary's own type: another would have all of it converted.
        vocabulary, starts = self._vocabulary.all(), self._starts.all()
        at = int(np.searchsorted(vocabulary, np.uint32(word)))
        if at == len(vocabulary) or vocabulary[at] != word:
            return np.zeros(0, np.int64)
        return self._rows[int(starts[at]) : int(starts[at + 1])].astype(np.int64)

    def scores(self, query: Asked) -> Float[np.ndarray, " n"]:
        """Σ max(0, best exact match) of every document, from the postings of the query's words alone.

        COIL's and UniCOIL's way (Hofstätter et al. 2022, section 6.1): one product for each posting, summed
        by document. Where a document has several rows of one id, the best counts.
        """
        offsets = self._store.offsets
        scores = np.zeros(len(offsets) - 1, np.float32)
        ids = np.zeros(0, np.int64) if query.ids is None else query.ids
        for word in np.unique(ids).tolist():
            rows = self.rows_of(word)
            if len(rows):
                similarity = self._store.against(query.rows[ids == word])(rows)(slice(None)).T
                owners = np.searchsorted(offsets, rows, side="right") - 1
                first = np.flatnonzero(np.diff(owners, prepend=-1))
                best = np.maximum.reduceat(similarity, first, axis=0)
                scores[owners[first]] += np.maximum(best, 0).sum(axis=1)
        return scores
