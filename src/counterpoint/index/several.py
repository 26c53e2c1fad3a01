"""Multi-vector sets, compared by MaxSim: of all rows, or of rows with the same id, by an inverted index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float

from counterpoint.index.inverted import Postings
from counterpoint.index.layout import SetLayout
from counterpoint.index.piece import Piece
from counterpoint.index.store import PROBES, Asked, Everything
from counterpoint.index.stored_rows import RowsStore

__all__ = ["ExactStore", "SeveralStore"]


@final
class SeveralStore(RowsStore):
    """A multi-vector set whose vectors are all scored."""

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False, probes: int = PROBES) -> Everything:
        """Score every document."""
        return Everything(self.all_scores(queries), matching=queries[0].ids is not None)


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
        return Everything(self.inverted_scores(queries), matching=True)

    def inverted_scores(self, queries: Sequence[Asked]) -> Float[np.ndarray, "q n"]:
        """MaxSim of exact matches with a floor of 0, for every document, from the inverted index."""
        scores = np.zeros((len(queries), int(self._starts[-1])), np.float32)
        for query, row in zip(queries, scores, strict=True):
            for postings, start, end in zip(self.postings, self._starts, self._starts[1:], strict=False):
                postings.add_scores(query, row[start:end], self._meter)
        return scores
