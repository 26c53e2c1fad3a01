"""Abstract classes for the searchable parts of an index.

A `Store` is one part of a score over all segments of an index: a vector set, or BM25. A first stage asks it
for a `Look`, which proposes candidates. Candidates are then scored exactly. To add a kind of store, add a
module to this package and an entry to `counterpoint.index.kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.best import EVERY, Among, best_among
from counterpoint.index.deletes import Counts
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import Written
from counterpoint.index.piece import Piece
from counterpoint.types import Document, Ragged

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels
    from counterpoint.index.settings import TextModel

__all__ = [
    "PROBES",
    "Approximate",
    "Asked",
    "BestRows",
    "Everything",
    "Look",
    "Store",
    "VectorStore",
    "VectorWriter",
]

PROBES = 16  # centroids probed per query row; chosen in docs/design.md


@dataclass(frozen=True)
class Asked:
    """A query to a vector set.

    Attributes:
        rows: the query's vectors; one for a pooled set.
        ids: of the rows. If given, two rows with different ids have similarity 0 (exact matching, Hofstätter
            et al. 2022, eq. 15).
        floor: raise a negative best similarity to 0.
    """

    rows: Float[np.ndarray, "m d"]
    ids: Int[np.ndarray, " m"] | None = None
    floor: bool = False


class Look(ABC):
    """The view that a first stage has of a store, for a batch of queries."""

    @abstractmethod
    def best(self, query: int, k: int, among: Among = EVERY) -> Int[np.ndarray, " c"]:
        """Positions of approximately the best `k` documents for one query of the batch, unordered.

        Args:
            query: its number in the batch.
            k: how many; fewer if fewer can be found.
            among: the allowed documents, and which of them is first on ties.
        """

    def known(self, query: int, positions: Int[np.ndarray, " c"]) -> Float[np.ndarray, " c"] | None:
        """The exact scores of some documents if every document was scored; else None."""
        return None


@final
class Everything(Look):
    """Exact scores of every document.

    Args:
        scores: one row per query.
        matching: drop documents that score 0, which have nothing in common with the query.
        kernels: find the best sooner; None for numpy.
    """

    def __init__(
        self,
        scores: Float[np.ndarray, "q n"] | Sequence[Float[np.ndarray, " n"]],
        *,
        matching: bool,
        kernels: Kernels | None = None,
    ):
        self._scores, self._matching, self._kernels = scores, matching, kernels

    def best(self, query: int, k: int, among: Among = EVERY) -> Int[np.ndarray, " c"]:
        """The best by score; a smaller `k` gives a subset of a larger one."""
        return best_among(self._scores[query], k, among, matching=self._matching, kernels=self._kernels)

    def known(self, query: int, positions: Int[np.ndarray, " c"]) -> Float[np.ndarray, " c"]:
        """Their exact scores; never None."""
        return self._scores[query][positions]


@final
class Approximate(Look):
    """Candidates that a function finds, query by query, without scoring every document.

    Args:
        queries: of the batch.
        near: given a query, k and the allowed documents, finds approximately the best.
    """

    def __init__(self, queries: Sequence[Asked], near: Callable[[Asked, int, Among], Int[np.ndarray, " c"]]):
        self._queries, self._near = queries, near

    def best(self, query: int, k: int, among: Among = EVERY) -> Int[np.ndarray, " c"]:
        """Approximately the best `k` of all segments together."""
        return self._near(self._queries[query], k, among)


Q = TypeVar("Q")

BestRows = tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]
"""For each query row, a row of a document, and what it contributes to the document's score."""


class Store(ABC, Generic[Q]):
    """One part of a score, over all segments of an index, open for reading; `Q` is its type of query."""

    @abstractmethod
    def look(self, queries: Sequence[Q], *, exhaustive: bool = False, probes: int = PROBES) -> Look:
        """Start a first stage for a batch of queries.

        Args:
            queries: one or more.
            exhaustive: score every document, even where an approximate search is available.
            probes: number of centroids probed per query row, where there are centroid lists.
        """

    @abstractmethod
    def scores(self, query: Q, positions: Int[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """The exact scores of some documents, by which candidates are ranked."""


class VectorStore(Store[Asked]):
    """One vector set.

    Attributes:
        layout: how it is stored.
    """

    layout: SetLayout

    @property
    @abstractmethod
    def lengths(self) -> Int[np.ndarray, " n"]:
        """Number of vectors of each document; in a static set, number of distinct ids."""

    @abstractmethod
    def take(self, positions: Int[np.ndarray, " k"]) -> Ragged:
        """The stored vectors of some documents, decoded to float32."""

    @abstractmethod
    def ids_of(self, positions: Int[np.ndarray, " k"]) -> list[Int[np.ndarray, " n"]]:
        """The ids of each document's vectors, in the order of `take`.

        Raises:
            ShapeError: the vectors have no ids.
        """

    @abstractmethod
    def all_scores(self, queries: Sequence[Asked]) -> Float[np.ndarray, "q n"]:
        """The exact scores of every document."""

    @abstractmethod
    def best_rows(self, query: Asked, positions: Int[np.ndarray, " k"]) -> list[BestRows]:
        """For each document and each query row, the document row that `scores` uses, and its share.

        The first row on ties; -1 if no row gave the score: the document is empty, has no row with the same
        id, or the best similarity is below the floor.
        """

    @abstractmethod
    def frequencies(self) -> Counts:
        """The distinct ids of all documents, ascending, and their document frequencies."""

    @abstractmethod
    def counts_of(self, positions: Int[np.ndarray, " k"]) -> Counts:
        """The distinct ids of some documents, ascending, and in how many of them each occurs."""

    def bound(self, model: TextModel) -> VectorStore:
        """The same store, bound to what it needs from the model that the index was built with."""
        return self


class VectorWriter(ABC):
    """Writer of one vector set of a new segment.

    Attributes:
        vectors: number of vectors written; a resumed build sets it.
    """

    vectors: int

    @abstractmethod
    def append(self, batch: Ragged, documents: Sequence[Document]) -> None:
        """Add the vectors of the next documents.

        Raises:
            DataError: a vector that cannot be stored.
        """

    @abstractmethod
    def copy(self, piece: Piece, documents: Int[np.ndarray, " k"]) -> None:
        """Add some documents of another segment, as they are stored there.

        If they are stored in another codec, their vectors are decoded and encoded again.
        """

    @abstractmethod
    def sync(self) -> dict[str, Written]:
        """Sync what was appended to disk; return for each file what a writer needs to continue it."""

    @abstractmethod
    def close(self) -> None:
        """Finish every file. Raw files stay until the commit, so `close` can be repeated."""

    @abstractmethod
    def abandon(self) -> None:
        """Close every file as it is, after an error; does nothing after `close`."""
