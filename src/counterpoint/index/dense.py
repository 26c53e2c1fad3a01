"""One vector a document: an inner product with all, or with those that a graph or a sketch leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.best import best_of
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.graph import Graph
from counterpoint.index.kernels import dot_scores
from counterpoint.index.layout import SetLayout
from counterpoint.index.rows import Rows
from counterpoint.index.sketch import Sketch
from counterpoint.index.store import PROBES, Asked, Everything, Look
from counterpoint.index.stored_rows import BLOCK, RowsStore

__all__ = ["DenseStore"]


@final
class DenseStore(RowsStore):
    """A pooled set."""

    def __init__(self, name: str, layout: SetLayout, segments: Sequence[tuple[CheckedFolder, int]]):
        super().__init__(name, layout, segments)
        linked = segments if layout.kind == "graph" else ()
        self._sketches = [
            Sketch(files, name, layout.dim, documents) if f"{name}.signs.npy" in files else None
            for files, documents in segments
        ]
        self._graphs = [Graph(files.file(f"{name}.hnsw"), documents) for files, documents in linked]

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False, probes: int = PROBES) -> Look:
        """At every vector; or along the graph, or at those that the sketch leaves, if there is one."""
        if self._graphs and not exhaustive:
            rows = np.concatenate([query.rows for query in queries])
            return _Along(self._graphs, self._starts, rows)
        if not exhaustive and any(self._sketches):
            return _Left(self, [self._estimates(query) for query in queries], queries)
        return Everything(self.all_scores(queries), matching=False)

    def _estimates(self, query: Asked) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Scores about as they are, and how far each may be off; without a sketch, as they are."""
        found = []
        for part, sketch in zip(self.parts, self._sketches, strict=True):
            if sketch is None:
                (exact,) = self._scan(part, query.rows)
                found.append((exact, np.zeros_like(exact)))
            else:
                kernels = self._meter.kernels((len(part.offsets) - 1) * query.rows.size)
                found.append(sketch.estimates(query.rows[0], kernels))
        estimates, errors = zip(*found, strict=True)
        return np.concatenate(estimates), np.concatenate(errors)

    def _table(
        self, queries: Sequence[Asked], part: Rows, documents: Int[np.ndarray, " n"] | None
    ) -> Float[np.ndarray, "q n"]:
        """As for several vectors; one query's with some documents have a kernel of their own."""
        bits = part.integral.bits if part.integral is not None else None
        if documents is not None and len(queries) == 1 and bits == 8:
            kernels = self._meter.kernels(documents.size * queries[0].rows.size)
            if kernels is not None:
                return part.scan_some(queries[0].rows, kernels, documents)[None]
        return super()._table(queries, part, documents)

    def all_scores(self, queries: Sequence[Asked]) -> Float[np.ndarray, "q n"]:
        """Inner products with every document."""
        rows = np.concatenate([query.rows for query in queries])
        return np.concatenate([self._scan(part, rows) for part in self.parts], axis=1)

    def _scan(self, part: Rows, rows: Float[np.ndarray, "q d"]) -> Float[np.ndarray, "q n"]:
        """Inner products with the documents of one segment."""
        documents = len(part.offsets) - 1
        if part.integral is not None:
            kernels = self._meter.kernels(rows.size * documents) if part.integral.bits == 8 else None
            if kernels is not None:
                return part.scan(rows, kernels)
            return part.against(rows)(slice(0, documents))(slice(None))
        step = max(1, BLOCK // (4 * self.layout.dim))
        blocks = [dot_scores(rows, part.values(slice(at, at + step))) for at in range(0, documents, step)]
        return np.concatenate(blocks, axis=1)


@final
class _Left(Look):
    """The documents whose estimate comes so near to the best scores that they may be among them."""

    def __init__(
        self,
        store: DenseStore,
        estimates: Sequence[tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]],
        queries: Sequence[Asked],
    ):
        self._store, self._estimates, self._queries = store, estimates, queries

    def best(self, query: int, k: int) -> Int[np.ndarray, " c"]:
        """By score, of those that are left."""
        (estimates, errors), asked = self._estimates[query], self._queries[query]
        first = best_of(estimates, k, matching=False)
        least = self._store.scores(asked, first).min(initial=np.inf)
        near = estimates + errors >= least
        near[first] = True
        left = np.flatnonzero(near)
        return left[best_of(self._store.scores(asked, left), k, matching=False)]


@final
class _Along(Look):
    """The way through the graphs of all segments, gone once for each depth that is asked for."""

    def __init__(
        self, graphs: Sequence[Graph], starts: Int[np.ndarray, " s1"], rows: Float[np.ndarray, "q d"]
    ):
        self._graphs, self._starts, self._rows = graphs, starts, rows
        self._found: dict[int, list[list[Int[np.ndarray, " c"]]]] = {}

    def best(self, query: int, k: int) -> Int[np.ndarray, " c"]:
        """About the best `k` of each segment."""
        if k not in self._found:
            self._found[k] = [graph.nearest(self._rows, k) for graph in self._graphs]
        found = self._found[k]
        return np.concatenate(
            [of_segment[query] + start for of_segment, start in zip(found, self._starts, strict=False)]
        )
