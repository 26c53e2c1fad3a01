"""One vector per document: inner products with all, or with those that a graph or a sketch selects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from counterpoint.index.best import EVERY, Among, Peaks, best_among, best_of
from counterpoint.index.graph import Graph
from counterpoint.index.kernels import dot_scores
from counterpoint.index.layout import SetLayout
from counterpoint.index.paths import multiplying
from counterpoint.index.piece import Piece
from counterpoint.index.rows import Rows
from counterpoint.index.sketch import Sketch
from counterpoint.index.store import PROBES, Asked, Everything, Look
from counterpoint.index.stored_rows import BLOCK, RowsStore

__all__ = ["DenseStore"]

FIRST = 4  # times `k` documents are compared first; the k-th best score is then nearly the final one
SIGN = 4  # nanoseconds that numpy takes for a component of a sketch
FEW = 0.1  # if a filter allows a smaller share of the documents, these are all scored without the graph


@final
class DenseStore(RowsStore):
    """A pooled set."""

    def __init__(self, name: str, layout: SetLayout, pieces: Sequence[Piece]):
        super().__init__(name, layout, pieces)
        linked, file = pieces if layout.kind == "graph" else (), f"{name}.hnsw"
        sketched = [f"{name}.signs.npy" in each.files for each in pieces]
        self._sketches = [
            Sketch(each.files, name, layout.dim, each.documents) if signs else None
            for each, signs in zip(pieces, sketched, strict=True)
        ]
        self._graphs = [  # read once and shared by all commits with the segment
            each.files.once(file, lambda files, each=each: Graph(files.file(file), each.documents))
            for each in linked
        ]

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False, probes: int = PROBES) -> Look:
        """Use the graph if there is one, else the sketch if there is one; else score every document."""
        if self._graphs and not exhaustive:
            return _Along(self, self._graphs, queries)
        if not exhaustive and any(self._sketches):
            return _Left(self, [self._bounds(query) for query in queries], queries)
        return Everything(self.all_scores(queries), matching=False)

    def _bounds(self, query: Asked) -> Float[np.ndarray, " n"]:
        """Upper bounds of all scores; exact scores where there is no sketch."""
        found = []
        for part, sketch in zip(self.parts, self._sketches, strict=True):
            if sketch is None:
                found += [*self._scan(part, query.rows)]
            else:
                kernels = self._meter.kernels(SIGN * (len(part.offsets) - 1) * query.rows.size)
                found.append(sketch.bounds(query.rows[0], kernels))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def peaks(self, scores: Float[np.ndarray, " n"], k: int) -> Peaks:
        """Scores of all documents, of which `k` are looked for."""
        return Peaks(scores, k, self._meter.kernels(0))

    def _table(
        self, queries: Sequence[Asked], part: Rows, documents: Int[np.ndarray, " n"] | None
    ) -> Float[np.ndarray, "q n"]:
        """As for multi-vector sets; a single query with some documents has its own kernel."""
        if documents is not None and len(queries) == 1 and part.layout.codec == "int8":
            kernels = self._meter.kernels(multiplying(documents.size * self.layout.dim, 1))
            if kernels is not None:
                return part.scan(queries[0].rows, kernels, documents)
        return super()._table(queries, part, documents)

    def all_scores(self, queries: Sequence[Asked]) -> Float[np.ndarray, "q n"]:
        """Inner products with every document."""
        rows = np.concatenate([query.rows for query in queries])
        return np.concatenate([self._scan(part, rows) for part in self.parts], axis=1)

    def _scan(self, part: Rows, rows: Float[np.ndarray, "q d"]) -> Float[np.ndarray, "q n"]:
        documents = len(part.offsets) - 1
        if part.integral is not None:
            work = multiplying(documents * self.layout.dim, len(rows))
            kernels = self._meter.kernels(work) if part.layout.codec == "int8" else None
            if kernels is not None:
                return part.scan(rows, kernels)
            return part.against(rows)(slice(0, documents))(slice(None))
        step = max(1, BLOCK // (4 * self.layout.dim))
        starts = range(0, max(1, documents), step)  # of no documents, one empty block
        return np.concatenate([dot_scores(rows, part.values(slice(at, at + step))) for at in starts], axis=1)


@final
class _Left(Look):
    """Candidates whose score, by its upper bound, may be among the best."""

    def __init__(
        self, store: DenseStore, bounds: Sequence[Float[np.ndarray, " n"]], queries: Sequence[Asked]
    ):
        self._store, self._bounds, self._queries = store, bounds, queries

    def best(self, query: int, k: int, among: Among = EVERY) -> Int[np.ndarray, " c"]:
        """The best of the candidates, by exact score."""
        bounds, asked = self._store.peaks(self._bounds[query], FIRST * k), self._queries[query]
        left = first = best_among(bounds, FIRST * k, among, matching=False)
        scores = self._store.scores(asked, first)
        if len(first) > k:
            least = np.partition(scores, -k)[-k]
            near = bounds.reaching(least)
            if among.allowed is not None:
                near = near[among.allowed[near]]
            left = np.concatenate([near, first[bounds.scores[first] < least]])
            scores = self._store.scores(asked, left)
        return left[best_of(scores, k, matching=False, order=among.at(left))]


@final
class _Along(Look):
    """Candidates from the graphs of all segments, searched once for each `k`."""

    def __init__(self, store: DenseStore, graphs: Sequence[Graph], queries: Sequence[Asked]):
        self._store, self._graphs, self._queries = store, graphs, queries
        self._rows = np.concatenate([query.rows for query in queries])
        self._found: dict[int, list[list[Int[np.ndarray, " c"]]]] = {}

    def best(self, query: int, k: int, among: Among = EVERY) -> Int[np.ndarray, " c"]:
        """Approximately the best `k` of each segment."""
        if among.allowed is not None:
            return self._among(query, k, among.allowed, among)
        if k not in self._found:
            self._found[k] = [graph.nearest(self._rows, k) for graph in self._graphs]
        return self._joined([of_segment[query] for of_segment in self._found[k]])

    def _among(
        self, query: int, k: int, marked: Bool[np.ndarray, " n"], among: Among
    ) -> Int[np.ndarray, " c"]:
        """The same with a filter. With few allowed documents the graph would miss them, so all are scored."""
        asked, allowed = self._rows[query : query + 1], np.flatnonzero(marked)
        if len(allowed) > max(k, FEW * len(marked)):
            pieces = np.split(marked, np.cumsum([graph.documents for graph in self._graphs])[:-1])
            found = self._joined(
                [graph.nearest(asked, k, piece)[0] for graph, piece in zip(self._graphs, pieces, strict=True)]
            )
            if len(found) >= k:
                return found
        scores = self._store.scores(self._queries[query], allowed)
        return allowed[best_of(scores, k, matching=False, order=among.at(allowed))]

    def _joined(self, found: Sequence[Int[np.ndarray, " c"]]) -> Int[np.ndarray, " c"]:
        starts = np.cumsum([0] + [graph.documents for graph in self._graphs])
        return np.concatenate([mine + start for mine, start in zip(found, starts, strict=False)])
