"""Static vector sets: the id determines the row, so documents store ids and the model has the vectors.

    <set>.ranks.npy   each document's distinct ids as places in <set>.vocabulary.npy, ascending

Every occurrence of an id has the same vector (L of Hybrid Isotropy Learning, Kim et al. 2024, section 3.3).
So a repeated id changes no maximum, and similarities are computed once per distinct id of the collection. The
model that encodes queries has the vectors (`TextModel.table`), so the index stores none.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.index.arrays_writer import ArraysWriter
from counterpoint.index.counted import check_finite, distinct
from counterpoint.index.deletes import Counts
from counterpoint.index.kernels import best_rows
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import NOTHING, Kept
from counterpoint.index.piece import Piece
from counterpoint.index.rows import offsets_of
from counterpoint.index.static_ids import StaticIds
from counterpoint.index.store import PROBES, Asked, BestRows, Everything, VectorStore
from counterpoint.index.stored_rows import merged_counts, split_by_segment
from counterpoint.types import Document, Ragged, rows_of_sets

if TYPE_CHECKING:
    from counterpoint.index.settings import TextModel

__all__ = ["StaticStore", "StaticWriter"]

VISITS = 4  # postings read per document and query row, before the rest is looked up by document


@final
class StaticStore(VectorStore):
    """A static set of an index; it needs to be bound to the model, which has the vectors."""

    def __init__(self, name: str, layout: SetLayout, pieces: Sequence[Piece]):
        self.name, self.layout = name, layout
        self.parts = [_opened(each, name) for each in pieces]
        self._live = [each.live for each in pieces]
        self._starts = np.cumsum([0] + [each.documents for each in pieces])
        self._table_of: Callable[[], Float[np.ndarray, "v d"]] | None = None

    def bound(self, model: TextModel) -> StaticStore:
        """The same store with the model's vectors, which are read when first needed."""
        bound = copy.copy(self)
        vars(bound).pop("_table", None)
        bound._table_of = lambda: model.table(self.name)
        return bound

    @cached_property
    def vocabulary(self) -> Int[np.ndarray, " v"]:
        """The distinct ids of live documents, ascending; of all documents if these have none."""
        pairs = zip(self.parts, self._live, strict=True)
        found = np.unique(np.concatenate([_ids_of(part, live) for part, live in pairs]))
        return found if len(found) else np.unique(np.concatenate([part.vocabulary for part in self.parts]))

    @cached_property
    def _places(self) -> list[Int[np.ndarray, " w"] | None]:
        """For each segment, the places of its ids in the vocabulary; None if it has the whole vocabulary."""
        # Ids of deleted documents only get any place, as these documents are never scored.
        last = max(len(self.vocabulary) - 1, 0)
        return [
            None
            if np.array_equal(part.vocabulary, self.vocabulary)
            else np.minimum(np.searchsorted(self.vocabulary, part.vocabulary), last)
            for part in self.parts
        ]

    @cached_property
    def _table(self) -> Float[np.ndarray, "v d"]:
        """The vectors of the vocabulary, for one product with a query over all segments."""
        if self._table_of is None:
            raise ConfigError(
                f"the vectors of the static set {self.name!r} are not in the index, but in its model; "
                "use Index.bound(model)"
            )
        table = self._table_of()
        highest = int(self.vocabulary[-1]) if len(self.vocabulary) else -1
        if highest >= len(table):
            raise ShapeError(
                f"the documents have the id {highest}, the model's table ends at {len(table) - 1}"
            )
        return table[self.vocabulary]

    @property
    def lengths(self) -> Int[np.ndarray, " n"]:
        """Number of distinct ids of each document."""
        return np.concatenate([np.diff(part.offsets) for part in self.parts])

    def frequencies(self) -> Counts:
        """The distinct ids of all documents, ascending, and their document frequencies."""
        return merged_counts([(part.vocabulary, part.frequencies) for part in self.parts])

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False, probes: int = PROBES) -> Everything:
        """Score every document from its ids."""
        return Everything(self.all_scores(queries), matching=queries[0].ids is not None)

    def best_rows(self, query: Asked, positions: Int[np.ndarray, " k"]) -> list[BestRows]:
        """For each document and each query row, the document row that `scores` uses, and its share."""
        documents = [self.take(np.array([position])) for position in positions]
        return [best_rows(query.rows, document, query.ids, query.floor) for document in documents]

    def ids_of(self, positions: Int[np.ndarray, " k"]) -> list[Int[np.ndarray, " n"]]:
        """The distinct ids of each document, ascending."""
        found = self._ranks(positions)
        return [self.parts[i].vocabulary[ranks].astype(np.int64) for i, ranks in found]

    def take(self, positions: Int[np.ndarray, " k"]) -> Ragged:
        """The vectors of some documents: one row per distinct id, in ascending order of ids."""
        table, found = self._table, self._ranks(positions)
        places = [ranks if (mine := self._places[i]) is None else mine[ranks] for i, ranks in found]
        rows = [table[each] for each in places]
        return Ragged.from_list(rows, self.ids_of(positions), dim=self.layout.dim)

    def _ranks(self, positions: Int[np.ndarray, " k"]) -> list[tuple[int, Int[np.ndarray, " n"]]]:
        """For each document its segment, and the places of its ids in the segment's vocabulary."""
        owners, found = np.searchsorted(self._starts, positions, side="right") - 1, []
        for position, i in zip(np.asarray(positions).tolist(), owners.tolist(), strict=True):
            part, document = self.parts[i], position - int(self._starts[i])
            found.append((i, part.ranks[part.offsets[document] : part.offsets[document + 1]]))
        return found

    def all_scores(self, queries: Sequence[Asked]) -> Float[np.ndarray, "q n"]:
        """Exact MaxSim of queries with every document, from the inverted index."""
        return np.stack([self._scores_of(query) for query in queries])

    def _scores_of(self, query: Asked) -> Float[np.ndarray, " n"]:
        """MaxSim of a query with every document.

        For each query row, ids are visited in descending order of similarity, and their postings read. The
        first id that reaches a document gives its maximum. Documents not reached after a number of postings
        are looked up by their own ids, unless all remaining ids have one similarity (0, for exact or floored
        matches).

        The result is bit-identical to the maxima over one product of table and query, summed in row order. A
        product with each document's own vectors differs by the rounding of BLAS, which depends on shapes.
        """
        scores, whole = [np.zeros(0, np.float32)], self._similarity(query)
        for part, places in zip(self.parts, self._places, strict=True):
            similarity = whole if places is None else whole[:, places]
            plans = [_visits(row, part) for row in similarity]
            for block in part.blocks:
                best = [block.best(row, *plan) for row, plan in zip(similarity, plans, strict=True)]
                scores.append(_summed(best, np.diff(block.offsets)))
        return np.concatenate(scores)

    def scores(self, query: Asked, positions: Int[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """MaxSim of a query with some documents, from their ids; bit-identical to `all_scores`."""
        scores = np.zeros(len(positions), np.float32)
        whole = self._similarity(query)
        for i, mine in split_by_segment(self._starts, positions):
            part, places = self.parts[i], self._places[i]
            where, offsets = rows_of_sets(part.offsets, positions[mine] - self._starts[i])
            filled = np.flatnonzero(np.diff(offsets) > 0)  # reduceat needs strictly increasing starts
            if len(filled):
                ranks = part.ranks[where]
                found = whole[:, ranks if places is None else places[ranks]]
                best = np.maximum.reduceat(found, offsets[:-1][filled], axis=1)
                scores[mine[filled]] = _summed(list(best), np.ones(len(filled)))
        return scores

    def counts_of(self, positions: Int[np.ndarray, " k"]) -> Counts:
        """The distinct ids of some documents, ascending, and in how many of them each occurs."""
        tables = []
        for i, mine in split_by_segment(self._starts, positions):
            part = self.parts[i]
            where, _ = rows_of_sets(part.offsets, positions[mine] - self._starts[i])
            ranks, counts = np.unique(part.ranks[where], return_counts=True)  # distinct within a document
            tables.append((part.vocabulary[ranks], counts))
        return merged_counts(tables)

    def _similarity(self, query: Asked) -> Float[np.ndarray, "m v"]:
        """Inner products of query rows with all vectors; 0 where exact matching forbids a match."""
        rows = self._table
        if query.rows.shape[1] != rows.shape[1]:
            raise ShapeError(f"query vectors of {query.rows.shape[1]} dimensions, a table of {rows.shape[1]}")
        similarity = (rows @ query.rows.T).T.copy()
        if query.ids is not None:
            similarity[np.asarray(self.vocabulary) != query.ids[:, None]] = 0
        return np.maximum(similarity, 0) if query.floor else similarity


def _opened(piece: Piece, name: str) -> StaticIds:
    """The ids of a segment, opened once and shared by all commits with the segment."""
    return piece.files.once(
        ("static", name), lambda files: StaticIds(files, name, offsets_of(files, name, piece.documents))
    )


def _ids_of(part: StaticIds, live: Bool[np.ndarray, " n"] | None) -> Int[np.ndarray, " v"]:
    """The distinct ids of a segment's documents that are not deleted."""
    if live is None:
        return part.vocabulary
    ranks = part.ranks[rows_of_sets(part.offsets, np.flatnonzero(live))[0]]
    return part.vocabulary[np.unique(ranks)]


def _visits(
    similarity: Float[np.ndarray, " v"], part: StaticIds
) -> tuple[Int[np.ndarray, " k"], float | None]:
    """The ids whose postings are read, and the similarity of all others if they share one."""
    if not len(similarity):
        return np.zeros(0, np.int64), 0.0
    order = np.argsort(-similarity)
    followed = np.cumsum(part.frequencies[order], dtype=np.int64)
    enough = int(np.searchsorted(followed, VISITS * (len(part.offsets) - 1))) + 1
    lowest = float(similarity[order[-1]])
    above = int(np.count_nonzero(similarity > lowest))
    return order[: min(enough, above)], lowest if above <= enough else None


def _summed(
    best: Sequence[Float[np.ndarray, " b"]], filled: Shaped[np.ndarray, " b"]
) -> Float[np.ndarray, " b"]:
    """The sum over query rows, in row order for any number of documents; 0 for an empty document.

    numpy's own sum uses another order for a single column than for many.
    """
    total = np.zeros(len(filled), np.float32)
    for row in best:
        total += row
    return np.where(filled > 0, total, np.float32(0))


@final
class StaticWriter(ArraysWriter):
    """Writes each document's distinct ids, and no vectors."""

    def __init__(self, folder: Path, name: str, layout: SetLayout, kept: Kept = NOTHING):
        super().__init__(folder, name, {"lengths": (np.uint32, ())}, True, kept)

    def append(self, batch: Ragged, documents: Sequence[Document]) -> None:
        """Add the ids of the next documents."""
        if batch.ids is None:
            raise ShapeError("a static set needs vectors with ids, but these have none")
        check_finite(batch.values, batch, documents, self.name)
        owners, ids = distinct(batch.ids, batch.offsets)
        lengths = np.bincount(owners, minlength=len(batch))
        self._write({}, np.concatenate([[0], np.cumsum(lengths)]), ids)
        self.vectors += len(batch.values) - len(ids)  # repeated ids count, too

    def copy(self, piece: Piece, documents: Int[np.ndarray, " k"]) -> None:
        """Add some documents of another segment; each of their ids counts as one vector."""
        source = _opened(piece, self.name)
        where, offsets = rows_of_sets(source.offsets, documents)
        self._write({}, offsets, source.vocabulary[source.ranks[where]])
