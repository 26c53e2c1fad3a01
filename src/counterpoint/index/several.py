"""Multi-vector sets, compared by MaxSim: of all rows, or of rows with the same id, by an inverted index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.best import Among, best_among, best_of
from counterpoint.index.inverted import Postings
from counterpoint.index.layout import SetLayout
from counterpoint.index.levels import levels_of
from counterpoint.index.piece import Piece
from counterpoint.index.store import PROBES, Approximate, Asked, Everything, Look
from counterpoint.index.stored_rows import RowsStore

__all__ = ["ExactStore", "SeveralStore"]


LEAST = 100_000  # documents of a segment; with fewer, all are scored by their vectors
BLOCK = 2**16  # documents scored at a time; bounds the memory that numpy takes
FIRST = 4  # documents that are compared by their vectors, per proposed candidate
SHORTLIST = 4  # documents whose centres are looked at, for each of these
ROW = 8  # nanoseconds that numpy takes for the levels of one with a row of the query


@final
class SeveralStore(RowsStore):
    """A multi-vector set whose vectors are all scored; in large segments, by means of words first."""

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False, probes: int = PROBES) -> Look:
        """Score every document; approximately if it has words with means, and there are many documents."""
        matching = queries[0].ids is not None
        large = (len(part.offsets) > LEAST and part.words is not None for part in self.parts)
        if exhaustive or matching or not any(large):
            return Everything(self.all_scores(queries), matching=matching)
        return Approximate(queries, self._by_means)

    def _by_means(self, query: Asked, k: int, among: Among) -> Int[np.ndarray, " c"]:
        """Approximately the best `k` of the allowed documents."""

        def found(segment: int, mine: Among) -> tuple[Int[np.ndarray, " s"], Float[np.ndarray, " s"]] | None:
            part = self.parts[segment]
            if len(part.offsets) <= LEAST or part.words is None:
                return None
            means, ranks = part.words
            kernels = self._meter.kernels(ROW * len(ranks) * len(query.rows))
            levels = levels_of(part, means, query, 1, kernels)
            levels = replace(levels, table=levels.table[means.place_of_rank])  # of each word
            places, blocks = ranks.all(), range(0, len(part.offsets) - 1, BLOCK)
            bounds = (part.offsets[at : at + BLOCK + 1] for at in blocks)
            scores = np.concatenate([levels.scores(places, of[:-1], of[1:]) for of in bounds])
            some = np.sort(best_among(scores, SHORTLIST * FIRST * k, mine, matching=False))
            return some, scores[some] + levels.centre_scores(part, some)

        near = self.nearest(query, FIRST * k, among, found)
        return near[best_of(self.scores(query, near), k, matching=False, order=among.at(near))]


@final
class ExactStore(RowsStore):
    """A multi-vector set with exact matching by id."""

    def __init__(self, name: str, layout: SetLayout, pieces: Sequence[Piece]):
        super().__init__(name, layout, pieces)
        self.postings = [
            Postings(each.files, name, part) for each, part in zip(pieces, self.parts, strict=True)
        ]

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False, probes: int = PROBES) -> Everything:
        """Score the rows of the query's ids if the query matches by id with a floor; else all rows."""
        if any(query.ids is None or not query.floor for query in queries):
            return Everything(self.all_scores(queries), matching=False)
        scores = self.inverted_scores(queries)
        return Everything(scores, matching=True, kernels=self._meter.kernels(0))

    def inverted_scores(self, queries: Sequence[Asked]) -> Float[np.ndarray, "q n"]:
        """MaxSim of exact matches with a floor of 0, for every document, from the inverted index."""
        scores = np.zeros((len(queries), int(self._starts[-1])), np.float32)
        for query, row in zip(queries, scores, strict=True):
            for postings, start, end in zip(self.postings, self._starts, self._starts[1:], strict=False):
                postings.add_scores(query, row[start:end], self._meter)
        return scores
