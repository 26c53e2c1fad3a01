"""One vector a document: an inner product with every one of them, or with those that a graph leads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.checked import CheckedFolder
from counterpoint.index.graph import Graph
from counterpoint.index.kernels import dot_scores
from counterpoint.index.layout import SetLayout
from counterpoint.index.rows import Rows
from counterpoint.index.store import Asked, Everything, Look
from counterpoint.index.stored_rows import BLOCK, RowsStore

__all__ = ["DenseStore"]


@final
class DenseStore(RowsStore):
    """A pooled set."""

    def __init__(self, name: str, layout: SetLayout, segments: Sequence[tuple[CheckedFolder, int]]):
        super().__init__(name, layout, segments)
        linked = segments if layout.kind == "graph" else ()
        self._graphs = [Graph(files.file(f"{name}.hnsw"), documents) for files, documents in linked]

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False) -> Look:
        """At every vector, or along the graph if there is one."""
        if self._graphs and not exhaustive:
            rows = np.concatenate([query.rows for query in queries])
            return _Along(self._graphs, self._starts, rows)
        return Everything(self.all_scores(queries), matching=False)

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
