"""The protocol of everything that an index holds of its documents and that can be searched.

A `Store` is one part of a score over all segments of an index: a vector set, or BM25. A first stage takes a
`Look` at it, which proposes candidates; candidates are then scored exactly. Each kind of store is one file
beside this one and one entry in `counterpoint.index.kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.best import Among, best_among
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import Written
from counterpoint.index.piece import Piece
from counterpoint.types import Document, Ragged

if TYPE_CHECKING:
    from counterpoint.index.settings import TextModel

__all__ = ["PROBES", "Asked", "Everything", "Look", "Store", "VectorStore", "VectorWriter"]

PROBES = 16  # centroids for each row of a query; chosen in docs/design.md


@dataclass(frozen=True)
class Asked:
    """What a vector set is asked.

    Attributes:
        rows: the query's vectors; one for a pooled set.
        ids: of the rows, where two rows with different ids are to have similarity 0 (exact matching,
            Hofstätter et al. 2022, eq. 15).
        floor: raise a negative best similarity to 0.
    """

    rows: Float[np.ndarray, "m d"]
    ids: Int[np.ndarray, " m"] | None = None
    floor: bool = False


class Look(ABC):
    """What a first stage saw of a store for a batch of queries."""

    @abstractmethod
    def best(self, query: int, k: int, among: Among = None) -> Int[np.ndarray, " c"]:
        """Positions of about the best `k` documents for one query of the batch, in no order.

        Args:
            query: its number in the batch.
            k: how many; fewer where fewer can be found.
            among: which documents may be; None for all.
        """

    def known(self, query: int, positions: Int[np.ndarray, " c"]) -> Float[np.ndarray, " c"] | None:
        """The exact scores of some documents, if the look was at every document; else None."""
        return None


@final
class Everything(Look):
    """Exact scores of every document.

    Args:
        scores: a row a query.
        matching: a document that scores 0 has nothing of the query, and is no candidate.
    """

    def __init__(self, scores: Float[np.ndarray, "q n"], *, matching: bool):
        self._scores, self._matching = scores, matching

    def best(self, query: int, k: int, among: Among = None) -> Int[np.ndarray, " c"]:
        """By score; fewer are always among more."""
        return best_among(self._scores[query], k, among, matching=self._matching)

    def known(self, query: int, positions: Int[np.ndarray, " c"]) -> Float[np.ndarray, " c"]:
        """All of them."""
        return self._scores[query, positions]


Q = TypeVar("Q")


class Store(ABC, Generic[Q]):
    """One part of a score, over all segments of an index, open for reading; `Q` is what it is asked."""

    @abstractmethod
    def look(self, queries: Sequence[Q], *, exhaustive: bool = False, probes: int = PROBES) -> Look:
        """A first stage for a batch of queries.

        Args:
            queries: one or more.
            exhaustive: look at every document, also where there is a shorter way.
            probes: where there are lists of centroids, how many are looked at for each row of a query.
        """

    @abstractmethod
    def scores(self, query: Q, positions: Int[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """The exact scores of some documents: what candidates are ranked by."""


class VectorStore(Store[Asked]):
    """One vector set.

    Attributes:
        layout: how it is stored.
    """

    layout: SetLayout

    @property
    @abstractmethod
    def lengths(self) -> Int[np.ndarray, " n"]:
        """How many vectors each document has; of a static set, how many distinct ids."""

    @abstractmethod
    def take(self, positions: Int[np.ndarray, " k"]) -> Ragged:
        """The vectors of some documents as they are stored, decoded to float32."""

    @abstractmethod
    def all_scores(self, queries: Sequence[Asked]) -> Float[np.ndarray, "q n"]:
        """The exact scores of every document."""

    @abstractmethod
    def best_rows(self, query: Asked, position: int) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """For each query row, the row of a document that `scores` takes, and what it adds to the score.

        The first of equals; -1 where no row gave the score: an empty document, no row with the same id, a
        best similarity below the floor.
        """

    @abstractmethod
    def frequencies(self) -> tuple[Int[np.ndarray, " v"], Int[np.ndarray, " v"]]:
        """The distinct ids of all documents, rising, and in how many documents each stands."""

    @abstractmethod
    def counts_of(
        self, positions: Int[np.ndarray, " k"]
    ) -> tuple[Int[np.ndarray, " v"], Int[np.ndarray, " v"]]:
        """For sets with ids: those of some documents, rising, and in how many of these each stands."""

    def bound(self, model: TextModel) -> VectorStore:
        """The same store with what it needs of the model that the index was built with."""
        return self


class VectorWriter(ABC):
    """What writes one vector set of a new segment.

    Attributes:
        vectors: how many were given so far; whoever goes on with an interrupted build sets it.
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

        Where that is in another codec, their vectors are decoded and coded again.
        """

    @abstractmethod
    def sync(self) -> dict[str, Written]:
        """Put on the disk what was appended; by file name, what to give a writer that goes on from there."""

    @abstractmethod
    def close(self) -> None:
        """Finish every file; what was appended stays until the commit, so that this can be repeated."""

    @abstractmethod
    def abandon(self) -> None:
        """Leave every file as it is, after an error; after `close` this does nothing."""
