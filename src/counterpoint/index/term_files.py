"""The terms of a batch of documents on disk: the documents of each term and its counts, nothing derived.

    terms.npy          the distinct terms in UTF-8, sorted by bytes, one after the other
    term_ends.npy      where each term ends in terms.npy
    frequencies.npy    document frequency of each term (uint32)
    postings.npy       for each term two packed lists, see `packing`: the gaps between its documents, and its
                       count in each of them, minus one
    posting_ends.npy   where the postings of each term end in postings.npy
    lengths.npy        number of terms of each document (uint32)

A gap is the number of documents skipped before the next one. Both kinds of ends are uint32, or uint64 if
there may be more bytes than uint32 can count. Nothing here depends on other documents. At query time, idf
and the average length are computed from the sums over all batches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int, Shaped, UInt8, UInt32

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.kernels import runs_of
from counterpoint.index.npy import NpyWriter, ends_type
from counterpoint.index.packing import LARGEST_PACKED, pack, place, unpack_all
from counterpoint.index.postings import unpacked

__all__ = ["TermFiles", "TermFilesWriter", "Terms", "encoded"]

NAMES = ("terms", "term_ends", "frequencies", "postings", "posting_ends", "lengths")
TOGETHER = 2**17  # postings unpacked at a time when all are read; bounds the memory
REMEMBERED = 2**16  # terms whose places are cached; the cache must not grow with the queries
STEP = 16  # the first of so many terms is kept in memory; a search reads four of the others
DAMAGED = "the BM25 postings are damaged; build the index again"


@final
class TermFilesWriter:
    """Write terms in byte order, with so many postings in all and at most `text` bytes, to files."""

    def __init__(self, folder: Path, postings: int, text: int):
        folder.mkdir(parents=True, exist_ok=True)
        kinds = {
            "terms": np.uint8,
            "term_ends": ends_type(text),
            "frequencies": np.uint32,
            "postings": np.uint8,
            "posting_ends": ends_type(2 * LARGEST_PACKED * postings),
            "lengths": np.uint32,
        }
        self._files: dict[str, NpyWriter] = {}
        try:
            for name, kind in kinds.items():
                self._files[name] = NpyWriter(folder / f"{name}.npy", kind)
        except BaseException:
            self.abandon()
            raise

    def append(
        self,
        terms: list[bytes],
        frequencies: Int[np.ndarray, " t"],
        documents: Int[np.ndarray, " p"],
        counts: Int[np.ndarray, " p"],
    ) -> None:
        """Add terms with their postings.

        Args:
            terms: in order, after those added before.
            frequencies: number of postings of each term.
            documents: of the postings, ascending within each term.
            counts: number of occurrences of the term in each of these documents.
        """
        gaps = np.diff(documents, prepend=-1) - 1
        firsts = np.cumsum(frequencies) - frequencies
        gaps[firsts] = documents[firsts]
        packed, sizes = _interleaved(pack(gaps, frequencies), pack(counts - 1, frequencies))
        self._extend("terms", np.frombuffer(b"".join(terms), np.uint8), np.array([len(x) for x in terms]))
        self._extend("postings", packed, sizes)
        self._files["frequencies"].append(frequencies.astype(np.uint32))

    def append_lengths(self, lengths: UInt32[np.ndarray, " d"]) -> None:
        """Add the lengths of the next documents."""
        self._files["lengths"].append(lengths)

    def close(self) -> None:
        """Finish every file."""
        for file in self._files.values():
            file.close()

    def abandon(self) -> None:
        """Close the files as they are; their headers say that they are empty."""
        for file in self._files.values():
            file.abandon()

    def _extend(self, name: str, piece: np.ndarray, sizes: Int[np.ndarray, " t"]) -> None:
        """Append bytes to a file, and their ends to its file of ends."""
        ends = self._files[f"{name.removesuffix('s')}_ends"]
        ends.append((self._files[name].rows + np.cumsum(sizes)).astype(ends.dtype))
        self._files[name].append(piece)


@final
@dataclass(frozen=True)
class Terms:
    """Some terms, in order, with all their postings.

    Attributes:
        text: the terms, one after the other.
        sizes: number of bytes of each term.
        frequencies: number of postings of each term.
        documents: of the postings, ascending within each term.
        counts: number of occurrences of the term in each of these documents.
    """

    text: UInt8[np.ndarray, " b"]
    sizes: Int[np.ndarray, " t"]
    frequencies: Int[np.ndarray, " t"]
    documents: Int[np.ndarray, " p"]
    counts: Int[np.ndarray, " p"]


@final
class TermFiles:
    """The files of `TermFilesWriter`, open for reading.

    The vocabulary and the lengths are checked whole at first use, postings block by block.

    Raises:
        ArtifactError: the files do not fit one another. Every method raises it, too, if what it reads is
            damaged.
    """

    def __init__(self, files: CheckedFolder):
        self._folder = files.folder
        self._text, self._ends, self._frequencies, self._postings, self._posting_ends, self._lengths = (
            files.array(f"{name}.npy") for name in NAMES
        )
        if not len(self._frequencies) == len(self._ends) == len(self._posting_ends):
            raise ArtifactError("the files of the BM25 terms do not fit one another", path=files.folder)
        self._known: dict[str, int | None] = {}

    @property
    def documents(self) -> int:
        """Number of documents, including those without terms."""
        return len(self._lengths)

    @cached_property
    def lengths(self) -> UInt32[np.ndarray, " documents"]:
        """Number of terms of each document."""
        return self._lengths.all()

    @cached_property
    def length(self) -> int:
        """Total number of terms of all documents."""
        return int(self.lengths.sum(dtype=np.int64))

    def frequency(self, term: str) -> int:
        """The document frequency of a term."""
        at = self._find(term)
        return 0 if at is None else self._counted.item(at)

    def postings(self, term: str) -> tuple[Int[np.ndarray, " p"], Int[np.ndarray, " p"]]:
        """The documents with a term, ascending, and its count in each."""
        packed, frequency = self.packed(term)
        if not frequency:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        try:
            return unpacked(packed, frequency, self.documents)
        except ValueError as error:
            raise self.damaged(error) from error

    def packed(self, term: str) -> tuple[UInt8[np.ndarray, " b"], int]:
        """The packed postings of a term, and how many there are."""
        at = self._find(term)
        if at is None:
            return np.zeros(0, np.uint8), 0
        ends = self._places
        return self._postings[(ends.item(at - 1) if at else 0) : ends.item(at)], self._counted.item(at)

    def damaged(self, why: object) -> ArtifactError:
        """The error for postings that cannot be unpacked."""
        return ArtifactError(f"{DAMAGED} ({why})", path=self._folder)

    def every(self) -> Iterator[Terms]:
        """All terms in order, with at most `TOGETHER` postings at a time, or those of one term."""
        total = np.concatenate([[0], np.cumsum(self._counted, dtype=np.int64)])
        for first, last in runs_of(total, TOGETHER):
            yield self._between(first, last)

    def _between(self, first: int, last: int) -> Terms:
        text, ends = self._text.all(), _edges(self._ends.all(), first, last)
        edges, frequencies = _edges(self._places, first, last), self._counted[first:last].astype(np.int64)
        packed, starts = self._postings[edges[0] : edges[-1]], edges[:-1] - edges[0]
        try:
            if frequencies.min() < 1 or (np.diff(edges) < 0).any():
                raise ValueError("a term has no postings")
            gaps, used = unpack_all(packed, starts, frequencies)
            counts, rest = unpack_all(packed, starts + used, frequencies)
        except ValueError as error:
            raise self.damaged(error) from error
        documents = np.cumsum(gaps + 1) - 1
        lasts = np.cumsum(frequencies) - 1
        documents -= np.repeat(np.concatenate([[0], documents[lasts[:-1]] + 1]), frequencies)
        if not np.array_equal(used + rest, np.diff(edges)) or (documents[lasts] >= self.documents).any():
            raise ArtifactError(DAMAGED, path=self._folder)
        return Terms(text[ends[0] : ends[-1]], np.diff(ends), frequencies, documents, counts + 1)

    @cached_property
    def _counted(self) -> UInt32[np.ndarray, " terms"]:
        return self._frequencies.all()

    @cached_property
    def _places(self) -> Shaped[np.ndarray, " terms"]:
        return self._posting_ends.all()

    @cached_property
    def _vocabulary(self) -> tuple[memoryview, Shaped[np.ndarray, " terms"]]:
        return self._text.all().data, self._ends.all()

    def _find(self, term: str) -> int | None:
        if term in self._known:
            return self._known[term]
        wanted, (text, ends) = encoded(term), self._vocabulary
        first = STEP * max(0, bisect_right(self._heads, wanted) - 1)
        edges = [ends.item(first - 1) if first else 0, *ends[first : first + STEP].tolist()]
        near = range(len(edges) - 1)
        at = bisect_left(near, wanted, key=lambda i: bytes(text[edges[i] : edges[i + 1]]))
        there = at < len(near) and text[edges[at] : edges[at + 1]] == wanted
        found = first + at if there else None
        if len(self._known) < REMEMBERED:
            self._known[term] = found
        return found

    @cached_property
    def _heads(self) -> list[bytes]:
        """Every `STEP`-th term."""
        text, ends = self._vocabulary
        edges = zip(_edges(ends, 0, len(ends))[:-1:STEP].tolist(), ends[::STEP].tolist(), strict=True)
        return [bytes(text[start:end]) for start, end in edges]


def _edges(ends: Shaped[np.ndarray, " n"], first: int, last: int) -> Int[np.ndarray, " k"]:
    """Where consecutive terms begin, and where the last ends."""
    before = ends[first - 1 : first] if first else np.zeros(1, ends.dtype)
    return np.concatenate([before, ends[first:last]]).astype(np.int64)


def encoded(term: str) -> bytes:
    """A term as it is stored and sorted; UTF-8 sorts like the characters."""
    return term.encode("utf-8", "surrogatepass")


def _interleaved(*lists: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Join several packed lists of each term; return the bytes and the size per term."""
    sizes = np.stack([size for _, size in lists], axis=1)
    packed = np.empty(int(sizes.sum()), np.uint8)
    starts = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
    for i, (content, size) in enumerate(lists):
        place(packed, starts[:, i], size, content)
    return packed, sizes.sum(axis=1)
