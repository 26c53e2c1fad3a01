"""Base of the stores of rows: one vector set over all segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ShapeError
from counterpoint.index.best import Among, best_of
from counterpoint.index.counted import distinct
from counterpoint.index.deletes import Counts
from counterpoint.index.kernels import best_of_similarities, check_dims, maxsim_by
from counterpoint.index.layout import SetLayout
from counterpoint.index.paths import Meter, multiplying
from counterpoint.index.piece import Piece
from counterpoint.index.rows import Rows, opened_rows
from counterpoint.index.store import Asked, BestRows, VectorStore
from counterpoint.types import Ragged, rows_of_sets

__all__ = ["BLOCK", "RowsStore", "merged_counts", "split_by_segment", "without_counts"]

BLOCK = 2**22  # bytes of decoded vectors held at a time; fits a CPU cache


class RowsStore(VectorStore):
    """A vector set whose rows are in the index; the codecs of its pieces may differ."""

    def __init__(self, name: str, layout: SetLayout, pieces: Sequence[Piece]):
        self.name, self.layout = name, layout
        self.parts = [opened_rows(each, name) for each in pieces]
        self._starts = np.cumsum([0] + [each.documents for each in pieces])
        self._meter = Meter()
        self._counted = [
            tuple(each.files.array(f"{name}.{kind}.npy") for kind in ("vocabulary", "frequencies"))
            for each in pieces
            if layout.ids
        ]

    @property
    def lengths(self) -> Int[np.ndarray, " n"]:
        """Number of vectors of each document."""
        return np.concatenate([np.diff(part.offsets) for part in self.parts])

    def take(self, positions: Int[np.ndarray, " k"]) -> Ragged:
        """The vectors of some documents, decoded to float32."""
        if len(self.parts) == 1 or not len(positions):
            return self.parts[0].take(positions)
        found = [(part.take(mine), where) for part, mine, where in self._split(positions)]
        order = np.argsort(np.concatenate([where for _, where in found]))
        return Ragged.concatenate([rows for rows, _ in found]).take(order)

    def ids_of(self, positions: Int[np.ndarray, " k"]) -> list[Int[np.ndarray, " n"]]:
        """The ids of each document's vectors."""
        found: dict[int, Int[np.ndarray, " n"]] = {}
        for part, mine, where in self._split(positions):
            rows, offsets = rows_of_sets(part.offsets, mine)
            ids, ends = self._ids(part, rows), pairwise(offsets.tolist())
            found |= {place: ids[first:end] for place, (first, end) in zip(where.tolist(), ends, strict=True)}
        return [found[place] for place in range(len(positions))]

    def scores(self, query: Asked, positions: Int[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """MaxSim with some documents; for a pooled set, the inner product."""
        if len(self.parts) == 1:
            return self._table([query], self.parts[0], positions)[0]
        scores = np.zeros(len(positions), np.float32)
        for part, mine, where in self._split(positions):
            scores[where] = self._table([query], part, mine)[0]
        return scores

    def all_scores(self, queries: Sequence[Asked]) -> Float[np.ndarray, "q n"]:
        """MaxSim with every document; vectors are decoded once for all queries."""
        return np.concatenate([self._table(queries, part, None) for part in self.parts], axis=1)

    def nearest(
        self,
        query: Asked,
        k: int,
        among: Among,
        found: Callable[[int, Among], tuple[Int[np.ndarray, " s"], Float[np.ndarray, " s"]] | None],
    ) -> Int[np.ndarray, " c"]:
        """The best `k` of the allowed documents by approximate scores.

        Args:
            query: the query.
            k: how many.
            among: the allowed documents.
            found: given the number of a segment and its allowed documents, some of these and their
                approximate scores; None if all of them are to be scored exactly.
        """
        positions, scores = [], []
        for i, (part, start) in enumerate(zip(self.parts, self._starts, strict=False)):
            count = len(part.offsets) - 1
            mine = among.within(int(start), int(start) + count)
            near = found(i, mine)
            if near is None:
                some = np.arange(count) if mine.allowed is None else np.flatnonzero(mine.allowed)
                near = some, self._table([query], part, some)[0]
            positions.append(near[0] + start)
            scores.append(near[1])
        every, order = np.concatenate(positions), among.at(np.concatenate(positions))
        return every[best_of(np.concatenate(scores), k, matching=False, order=order)]

    def best_rows(self, query: Asked, positions: Int[np.ndarray, " k"]) -> list[BestRows]:
        """For each document and each query row, the document row that `scores` uses, and its share."""
        found: dict[int, BestRows] = {}
        for part, mine, where in self._split(positions):
            load = part.against(query.rows, few=True)
            for document, place in zip(mine, where.tolist(), strict=True):
                rows, _ = rows_of_sets(part.offsets, np.array([document]))
                if not len(rows):
                    found[place] = np.full(len(query.rows), -1), np.zeros(len(query.rows), np.float32)
                    continue
                ids = None if query.ids is None else (query.ids, self._ids(part, rows))
                found[place] = best_of_similarities(load(rows)(slice(None)), ids, floor=query.floor)
        return [found[place] for place in range(len(positions))]

    def frequencies(self) -> Counts:
        """The distinct ids of all documents, ascending, and their document frequencies."""
        return merged_counts([(ids.all(), counts.all()) for ids, counts in self._counted])

    def counts_of(self, positions: Int[np.ndarray, " k"]) -> Counts:
        """The distinct ids of some documents, ascending, and in how many of them each occurs."""
        tables = []
        for part, mine, _ in self._split(positions):
            rows, offsets = rows_of_sets(part.offsets, mine)
            _, ids = distinct(self._ids(part, rows), offsets)
            tables.append(np.unique(ids, return_counts=True))
        return merged_counts(tables)

    def _split(self, positions: Int[np.ndarray, " k"]):
        """For each segment its rows, the positions in it, and their places among all positions."""
        for i, where in split_by_segment(self._starts, positions):
            yield self.parts[i], positions[where] - self._starts[i], where

    def _table(
        self, queries: Sequence[Asked], part: Rows, documents: Int[np.ndarray, " n"] | None
    ) -> Float[np.ndarray, "q n"]:
        """MaxSim of queries with documents of one segment; None for all documents."""
        asked = np.concatenate([query.rows for query in queries])
        check_dims(asked.shape[1], self.layout.dim)
        matching = queries[0].ids is not None
        some = np.arange(len(part.offsets) - 1) if documents is None else documents
        count = int((part.offsets[some + 1] - part.offsets[some]).sum())
        if part.factored and self.layout.ids if matching else part.integral is not None:
            kernels = self._meter.kernels(multiplying(count * self.layout.dim, len(asked)))
            if kernels is not None:
                compiled = part.matched if matching else part.compiled
                return np.stack([compiled(kernels, query, some) for query in queries])
        rows, offsets = (None, part.offsets) if documents is None else rows_of_sets(part.offsets, documents)
        ends = np.cumsum([0] + [len(query.rows) for query in queries])
        load, ids = part.against(asked), None
        if matching:
            of_queries = np.concatenate([query.ids for query in queries if query.ids is not None])
            ids = (of_queries, self._ids(part, slice(None) if rows is None else rows))
        return maxsim_by(
            (lambda where: load(rows[where])) if rows is not None else load,
            (ends, offsets),
            ids,
            floor=queries[0].floor,
            most=max(1, BLOCK // (4 * self.layout.dim)),
        )

    def _ids(self, part: Rows, rows: slice | Int[np.ndarray, " r"]) -> Int[np.ndarray, " r"]:
        found = part.ids(rows)
        if found is None:
            raise ShapeError(f"exact matching needs vectors with ids, but those of {self.name!r} have none")
        return found


def split_by_segment(starts: Int[np.ndarray, " s1"], positions: Int[np.ndarray, " k"]):
    """Each segment that has some of the positions, and their places among all positions."""
    if len(starts) == 2:
        yield 0, np.arange(len(positions))
        return
    owners = np.searchsorted(starts, positions, side="right") - 1
    for i in range(len(starts) - 1):
        where = np.flatnonzero(owners == i)
        if len(where):
            yield i, where


def merged_counts(tables: Sequence[Counts]) -> Counts:
    """Merge ids and counts of several segments."""
    if not tables:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    known, where = np.unique(np.concatenate([ids for ids, _ in tables]), return_inverse=True)
    counts = np.concatenate([counts for _, counts in tables])
    return known, np.bincount(where, weights=counts, minlength=len(known)).astype(np.int64)


def without_counts(counted: Counts, gone: Sequence[Counts]) -> Counts:
    """Subtract the ids and counts of some documents; ids with count 0 are dropped."""
    if not gone:
        return counted
    negative = [(ids, -counts.astype(np.int64)) for ids, counts in gone]
    ids, counts = merged_counts([counted, *negative])
    return ids[counts > 0], counts[counts > 0]
