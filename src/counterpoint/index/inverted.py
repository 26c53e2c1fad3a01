"""The inverted index of a vector set's ids: the rows of an id, found without reading any other.

    <set>.postings.npy   row numbers grouped by id, ascending within each id
    <set>.starts.npy     where the rows of each id in <set>.vocabulary.npy begin, and where the last end

A posting is only a row number. The row's content is in the set's values, and its document follows from the
number of rows of each document.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float, Int, UInt32

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.kernels import documents_near
from counterpoint.index.npy import ends_type, open_npy
from counterpoint.index.sorted_rows import SortedRows
from counterpoint.index.store import Asked

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels, Meter
    from counterpoint.index.rows import Rows

__all__ = ["Postings", "write_ids", "write_postings"]

Lists = tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]
"""Where the postings of each query row begin and end."""

POSTING = 100  # nanoseconds that numpy takes for one
CHUNK = 2**22  # rows sorted at a time; bounds the memory of a build


def write_postings(folder: Path, name: str) -> None:
    """Write the postings of a set whose ids and vocabulary are complete.

    A counting sort, chunk by chunk: memory grows with the number of distinct ids, not of rows.
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
    dtype = ends_type(len(ids))
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


def write_ids(folder: Path, name: str, kind: str) -> None:
    """Write the `ids` or `ranks` (the kind) of a set's rows from its postings: undo `write_postings`."""
    postings, starts, vocabulary = (
        open_npy(folder / f"{name}.{key}.npy") for key in ("postings", "starts", "vocabulary")
    )
    dtype = np.uint16 if kind == "ranks" and len(vocabulary) <= 2**16 else np.uint32
    path = folder / f"{name}.{kind}.npy"
    if not len(postings):
        np.save(path, np.zeros(0, dtype))
        return
    ids = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(len(postings),))
    _reserve(path)
    for at in range(0, len(postings), CHUNK):
        some = postings[at : at + CHUNK]
        ranks = np.searchsorted(starts, np.arange(at, at + len(some)), side="right") - 1
        ids[some] = ranks if kind == "ranks" else vocabulary[ranks]
    ids.flush()


def _reserve(path: Path) -> None:
    """Reserve a file's disk space: a mapped file without space kills the process instead of raising an error.

    Raises:
        OSError: there is not enough space.
    """
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


@final
class Postings:
    """The inverted index of one set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, rows: Rows):
        self._store, count = rows, len(rows)
        has_sorted = f"{name}.sorted_documents.npy" in files
        self._sorted = SortedRows(files, name, rows.layout, count) if has_sorted else None
        self._vocabulary = files.array(f"{name}.vocabulary.npy")
        self._starts = files.array(f"{name}.starts.npy")
        self._rows = files.array(f"{name}.postings.npy")
        if len(self._starts) != len(self._vocabulary) + 1 or self._starts[-1:] != len(self._rows):
            raise ArtifactError(f"the postings of {name!r} do not fit its vocabulary", path=files.folder)

    @cached_property
    def _near(self) -> UInt32[np.ndarray, " b"]:
        return documents_near(self._store.offsets)

    def lists_of(self, words: Int[np.ndarray, " m"]) -> Lists:
        """Where the postings of each word begin and end; an empty range for an unknown word."""
        vocabulary, starts = self._vocabulary.all(), self._starts.all()
        stored = (words >= 0) & (words < 2**32)
        # In the vocabulary's dtype, else numpy converts the whole vocabulary.
        wanted = np.where(stored, words, 0).astype(vocabulary.dtype)
        at = np.searchsorted(vocabulary, wanted)
        found = stored & (at < len(vocabulary))
        found[found] = vocabulary[at[found]] == wanted[found]
        at = np.where(found, at, 0)
        firsts = starts[at].astype(np.int64)
        ends = starts[np.minimum(at + 1, len(vocabulary))].astype(np.int64)
        return firsts, np.where(found, ends, firsts)

    def add_scores(self, query: Asked, scores: Float[np.ndarray, " n"], meter: Meter) -> None:
        """Add Σ max(0, best exact match) of every document, from the postings of the query's words only.

        As in COIL and UniCOIL (Hofstätter et al. 2022, section 6.1): one product per posting, summed by
        document. If a document has several rows of one id, the best counts. Without ids nothing is added.
        """
        ids = np.zeros(0, np.int64) if query.ids is None else query.ids
        firsts, ends = self.lists_of(ids)
        kernels = meter.kernels(POSTING * int((ends - firsts).sum())) if self._store.factored else None
        if kernels is not None:
            self._add_compiled(query, (firsts, ends), scores, kernels)
            return
        for asked, first, end in zip(range(len(ids)), firsts.tolist(), ends.tolist(), strict=True):
            if first < end:
                self._add(query.rows[asked : asked + 1], self._rows[first:end].astype(np.int64), scores)

    def _add(
        self, row: Float[np.ndarray, "1 d"], rows: Int[np.ndarray, " p"], scores: Float[np.ndarray, " n"]
    ) -> None:
        """Add the contribution of one query row with the postings of its word."""
        (similarity,) = self._store.against(row)(rows)(slice(None))
        owners = np.searchsorted(self._store.offsets, rows, side="right") - 1
        first = np.flatnonzero(np.diff(owners, prepend=-1))
        scores[owners[first]] += np.maximum(np.maximum.reduceat(similarity, first), 0)

    def _add_compiled(
        self, query: Asked, lists: Lists, scores: Float[np.ndarray, " n"], kernels: Kernels
    ) -> None:
        if self._sorted is not None:
            none = np.zeros(0, np.int64)
            asked, _ = self._store.factors(query.rows, none, none)
            *stored, documents = self._sorted.checked(*lists)
            kernels.add_sorted(scores, asked, lists, (*stored, kernels.halves), documents)
            return
        postings = self._rows.checked(*lists)
        rows = np.zeros(0, np.int64)
        if not self._store.intact:
            pieces = [postings[first:end] for first, end in zip(*lists, strict=True)]
            rows = np.concatenate(pieces).astype(np.int64)
        asked, stored = self._store.factors(query.rows, rows, rows + 1)
        stored, documents = (*stored, kernels.halves), (self._store.offsets.view(np.uint64), self._near)
        kernels.add_postings(scores, asked, (postings, *lists), stored, documents)
