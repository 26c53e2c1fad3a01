"""Sorted runs: the terms of some documents in order, in memory or on disk, and how runs are merged.

A build collects terms in the order of documents and needs them in the order of terms. So it sorts as many as
fit in memory, writes them as a run, and continues. At the end it merges all runs. A merge of segments makes
runs of their live documents; only counts are stored per document, so no text is analysed again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from itertools import groupby, islice, repeat
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Bool, Int, Integer, UInt8, UInt32

from counterpoint.index.npy import NpyWriter, open_npy
from counterpoint.index.term_files import TermFiles, TermFilesWriter, encoded

__all__ = ["Merged", "SortedRun", "merge_terms", "merged", "sorted_run", "write_runs"]

READ = 2**12  # terms of a run in memory while runs are merged
POSTINGS = 2**19  # packed at a time, or those of one term if it has more
KINDS: Mapping[str, type[np.generic]] = MappingProxyType(
    {
        "text": np.uint8,
        "ends": np.int64,
        "frequencies": np.int64,
        "documents": np.uint32,
        "counts": np.uint32,
        "lengths": np.uint32,
    }
)
"""The arrays of a run on disk."""


@final
@dataclass(frozen=True)
class SortedRun:
    """The terms of consecutive documents, sorted by their bytes.

    Attributes:
        text: the terms, one after the other.
        ends: where each ends in `text`.
        frequencies: number of postings of each term.
        documents: of the postings, ascending within each term.
        counts: number of occurrences of the term in each of these documents.
        lengths: number of terms of each document.
    """

    text: UInt8[np.ndarray, " b"]
    ends: Int[np.ndarray, " t"]
    frequencies: Int[np.ndarray, " t"]
    documents: UInt32[np.ndarray, " p"]
    counts: UInt32[np.ndarray, " p"]
    lengths: UInt32[np.ndarray, " d"]

    def terms(self) -> Iterator[bytes]:
        """Every term, in order."""
        start = 0
        for at in range(0, len(self.ends), READ):
            ends = self.ends[at : at + READ].tolist()
            text = self.text[start : ends[-1]].tobytes()
            for first, last in zip([start, *ends], ends, strict=False):
                yield text[first - start : last - start]
            start = ends[-1]

    def stored(self, folder: Path, name: str) -> SortedRun:
        """Write the run to disk; return it memory-mapped."""
        made = {}
        for field in fields(self):
            path = folder / f"{name}.{field.name}.npy"
            np.save(path, getattr(self, field.name))
            made[field.name] = open_npy(path)
        return SortedRun(**made)


def sorted_run(
    vocabulary: Mapping[str, int],
    tokens: Integer[np.ndarray, " n"],
    lengths: Integer[np.ndarray, " d"],
    first: int,
) -> SortedRun:
    """Sort the terms of some documents.

    Args:
        vocabulary: a number for each term.
        tokens: the numbers of all terms, document by document.
        lengths: number of terms of each document.
        first: the position of the first document.
    """
    terms = sorted(vocabulary)
    ranks = np.empty(len(terms), np.uint64)
    ranks[[vocabulary[term] for term in terms]] = np.arange(len(terms), dtype=np.uint64)
    keys = ranks[tokens]
    keys <<= np.uint64(32)
    keys |= np.repeat(np.arange(first, first + len(lengths), dtype=np.uint32), lengths)
    keys.sort()
    starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
    counts = np.diff(starts, append=len(keys)).astype(np.uint32)
    keys = keys[starts]
    documents = keys.astype(np.uint32)  # the lower half
    keys >>= np.uint64(32)
    whole = [encoded(term) for term in terms]
    return SortedRun(
        text=np.frombuffer(b"".join(whole), np.uint8),
        ends=np.cumsum([len(term) for term in whole], dtype=np.int64),
        frequencies=np.bincount(keys.astype(np.int64), minlength=len(terms)),
        documents=documents,
        counts=counts,
        lengths=np.asarray(lengths, np.uint32),
    )


@final
@dataclass(frozen=True)
class Merged:
    """Some terms with all their postings, in the form of `TermFilesWriter.append`."""

    terms: list[bytes]
    frequencies: Int[np.ndarray, " t"]
    documents: Int[np.ndarray, " p"]
    counts: Int[np.ndarray, " p"]


def merged(runs: Sequence[SortedRun]) -> Iterator[Merged]:
    """The terms of all runs (by document) in order, a bounded number of postings at a time."""
    if len(runs) == 1:
        yield from _in_order(runs[0])
        return
    readers = [Reader(run) for run in runs]
    entries = heapq.merge(*(zip(run.terms(), repeat(i), strict=False) for i, run in enumerate(runs)))
    terms, postings = [], 0
    for term, group in groupby(entries, key=itemgetter(0)):
        for _, i in group:
            postings += readers[i].ask(len(terms))
        terms.append(term)
        if postings >= POSTINGS:
            yield _joined(terms, readers)
            terms, postings = [], 0
    if terms:
        yield _joined(terms, readers)


def _in_order(run: SortedRun) -> Iterator[Merged]:
    """The same for a single run, whose terms need no merging."""
    terms, first, done = run.terms(), 0, 0
    while first < len(run.frequencies):
        ends = np.cumsum(run.frequencies[first : first + POSTINGS])  # each term has at least one posting
        count = min(int(np.searchsorted(ends, POSTINGS)) + 1, len(ends))
        rows = slice(done, done + int(ends[count - 1]))
        documents, counts = (each[rows].astype(np.int64) for each in (run.documents, run.counts))
        yield Merged(list(islice(terms, count)), run.frequencies[first : first + count], documents, counts)
        first, done = first + count, rows.stop


def write_runs(runs: Sequence[SortedRun], folder: Path) -> None:
    """Merge runs into the files of an index."""
    postings = sum(len(run.documents) for run in runs)
    writer = TermFilesWriter(folder, postings, text=sum(len(run.text) for run in runs))
    try:
        for part in merged(runs):
            writer.append(part.terms, part.frequencies, part.documents, part.counts)
        for run in runs:
            writer.append_lengths(np.asarray(run.lengths))
        writer.close()
    finally:
        writer.abandon()


@final
class Reader:
    """Reads the postings of a run once, in order."""

    def __init__(self, run: SortedRun):
        self._run, self._asked, self._term, self._posting = run, [], 0, 0

    def ask(self, place: int) -> int:
        """Schedule the next term's postings for reading, under this place; return their number."""
        self._asked.append(place)
        return int(self._run.frequencies[self._term + len(self._asked) - 1])

    def read(self) -> tuple[Int[np.ndarray, " p"], Int[np.ndarray, " p"], Int[np.ndarray, " p"]]:
        """Read what was scheduled: for each posting, the place of its term, its document and its count."""
        frequencies = self._run.frequencies[self._term : self._term + len(self._asked)]
        places = np.repeat(np.array(self._asked, np.int64), frequencies)
        rows = slice(self._posting, self._posting + len(places))
        self._term, self._posting, self._asked = self._term + len(self._asked), rows.stop, []
        return places, self._run.documents[rows].astype(np.int64), self._run.counts[rows].astype(np.int64)


def _joined(terms: list[bytes], readers: Sequence[Reader]) -> Merged:
    """The postings of these terms; within each term, run by run."""
    places, documents, counts = map(np.concatenate, zip(*(reader.read() for reader in readers), strict=True))
    order = np.argsort(places, kind="stable")
    return Merged(terms, np.bincount(places, minlength=len(terms)), documents[order], counts[order])


def merge_terms(parts: Sequence[tuple[TermFiles, Bool[np.ndarray, " n"] | None]], folder: Path) -> None:
    """Write the terms of all live documents of some segments, as a build of these documents would.

    Postings are unpacked into temporary files in the same folder, so memory grows only with the postings of
    one term.

    Args:
        parts: for each segment its terms, and which of its documents are not deleted; None for all.
        folder: an existing one.

    Raises:
        ArtifactError: a segment's files are damaged.
    """
    runs, first = [], 0
    try:
        for number, (terms, live) in enumerate(parts):
            runs.append(_run(terms, live, first, folder / f"run{number}"))
            first += len(runs[-1].lengths)
        write_runs(runs, folder)
    finally:
        for path in folder.glob("run*.*.npy"):
            path.unlink()


def _run(terms: TermFiles, live: Bool[np.ndarray, " n"] | None, first: int, stem: Path) -> SortedRun:
    """Write the terms of a segment's live documents to disk; the first document gets the number `first`."""
    kept = np.ones(terms.documents, bool) if live is None else live
    numbers, end = np.cumsum(kept) - 1 + first, 0
    with ExitStack() as files:
        writers = {
            name: files.enter_context(NpyWriter(stem.with_name(f"{stem.name}.{name}.npy"), of))
            for name, of in KINDS.items()
        }
        writers["lengths"].append(terms.lengths[kept])
        for part in terms.every():
            mine = kept[part.documents]
            owners = np.repeat(np.arange(len(part.sizes)), part.frequencies)
            left = np.bincount(owners[mine], minlength=len(part.sizes))
            some = left > 0
            writers["text"].append(part.text[np.repeat(some, part.sizes)])
            writers["ends"].append(end + np.cumsum(part.sizes[some]))
            writers["frequencies"].append(left[some])
            writers["documents"].append(numbers[part.documents[mine]].astype(np.uint32))
            writers["counts"].append(part.counts[mine].astype(np.uint32))
            end = writers["text"].rows
    return SortedRun(**{name: open_npy(writer.path) for name, writer in writers.items()})
