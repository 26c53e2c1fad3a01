"""Some documents of a collection that follow one another, with what each kind of system indexes of them.

Needs numpy alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from synthetic import Synthetic
from vector_files import CHUNK, Chunk, Query, TokenFiles, mean_of, read_chunk

ASKED = 32  # row vectors of a document that it is looked for by


@dataclass(frozen=True)
class Some:
    """Documents that follow one another.

    Attributes:
        ids: of each.
        terms: of each; empty lists where only vectors are asked for.
        chunk: row vectors with offsets; None where only terms are asked for.
        words: ids of words of the row vectors, of a synthetic collection.
        pooled: vectors of a synthetic collection.
    """

    ids: list[str]
    terms: list[list[str]]
    chunk: Chunk | None = None
    words: np.ndarray | None = None
    pooled: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def asking(self, at: int) -> Query:
        """A query that the document at a position answers best."""
        at, rows = range(len(self))[at], np.zeros((0, 1), np.float32)
        if self.chunk is not None:
            rows = self.chunk.sets[at][:ASKED].astype(np.float32)
        pooled = self.pooled[at] if self.pooled is not None else mean_of(rows)
        words = None
        if self.words is not None and self.chunk is not None:
            words = self.words[self.chunk.offsets[at] : self.chunk.offsets[at + 1]][:ASKED]
        text = " ".join(self.terms[at]) or f"document {self.ids[at]}"
        return Query(self.ids[at], text, self.terms[at], rows, pooled, words)


class Documents:
    """What a collection has of some of its documents.

    Args:
        files: the collection.
        kind: of the systems that want them.
    """

    def __init__(self, files: TokenFiles | Synthetic, kind: str):
        self.files, self._kind = files, kind
        self._terms: list[list[str]] = []
        if kind == "lexical":
            self._terms = list(files.terms())

    def chunks(self, count: int) -> Iterator[Some]:
        """The first documents of the collection, a file at a time."""
        for first in range(0, count, CHUNK):
            yield self.some(first, min(CHUNK, count - first))

    def some(self, first: int, count: int) -> Some:
        """Documents from a number on."""
        if self._kind == "lexical":
            return Some([str(i) for i in range(first, first + count)], self._terms[first : first + count])
        pieces = []
        while count:
            whole, at = self._whole(first // CHUNK), first % CHUNK
            taken = min(count, len(whole) - at)
            if taken < 1:
                raise ValueError(f"the collection has no document number {first:,}")
            pieces.append(part_of(whole, at, at + taken))
            first, count = first + taken, count - taken
        return joined(pieces)

    @lru_cache(2)  # noqa: B019 - lives as long as the process
    def _whole(self, number: int) -> Some:
        """All documents of a file; a document is called by its number."""
        if isinstance(self.files, Synthetic):
            rows = self.files.rows("minilm", number, CHUNK)
            ids = [str(number * CHUNK + i) for i in range(CHUNK)]
            chunk = Chunk(ids, rows.values, rows.offsets)
            terms = [rows.words[a:b] for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]
            return Some(ids, terms, chunk, rows.ids, self.files.pooled_of("minilm", number, CHUNK))
        chunk = read_chunk(self.files.folder / f"docs-{number:04}.npz")
        ids = [str(number * CHUNK + i) for i in range(len(chunk.ids))]
        return Some(ids, [[] for _ in ids], Chunk(ids, chunk.values, chunk.offsets))


def part_of(some: Some, start: int, end: int) -> Some:
    """Documents from one position to another."""
    if some.chunk is None:
        return Some(some.ids[start:end], some.terms[start:end])
    first, last = some.chunk.offsets[start], some.chunk.offsets[end]
    offsets = some.chunk.offsets[start : end + 1] - first
    chunk = Chunk(some.ids[start:end], some.chunk.values[first:last], offsets)
    words = None if some.words is None else some.words[first:last]
    pooled = None if some.pooled is None else some.pooled[start:end]
    return Some(some.ids[start:end], some.terms[start:end], chunk, words, pooled)


def joined(pieces: list[Some]) -> Some:
    """Documents of several pieces as one."""
    if len(pieces) == 1:
        return pieces[0]
    chunks = [piece.chunk for piece in pieces if piece.chunk is not None]
    ids = [name for piece in pieces for name in piece.ids]
    lengths = np.concatenate([np.diff(chunk.offsets) for chunk in chunks])
    values = np.concatenate([chunk.values for chunk in chunks])
    chunk = Chunk(ids, values, np.concatenate([[0], np.cumsum(lengths)]))
    words = [piece.words for piece in pieces if piece.words is not None]
    pooled = [piece.pooled for piece in pieces if piece.pooled is not None]
    return Some(
        ids,
        [terms for piece in pieces for terms in piece.terms],
        chunk,
        np.concatenate(words) if words else None,
        np.concatenate(pooled) if pooled else None,
    )
