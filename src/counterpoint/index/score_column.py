"""The scores of one term, in the form in which they are added up fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

__all__ = ["ScoreColumn"]

FREQUENT = 4
"""A term that more than one of so many documents have has a score for every document: a sum of two whole
arrays is so much faster than one over given rows."""


@final
@dataclass(frozen=True)
class ScoreColumn:
    """What a term adds to the score of each document.

    Attributes:
        rows: the documents that have the term, rising; None where `scores` has one for every document.
        scores: of these.
    """

    rows: Int[np.ndarray, " p"] | None
    scores: Float[np.ndarray, " p"]

    @staticmethod
    def of(rows: Int[np.ndarray, " p"], scores: Float[np.ndarray, " p"], documents: int) -> ScoreColumn:
        """The better form for these scores, in a collection of so many documents."""
        if FREQUENT * len(rows) <= documents:
            return ScoreColumn(rows, scores)
        every = np.zeros(documents, np.float32)
        every[rows] = scores
        return ScoreColumn(None, every)

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return self.scores.nbytes + (0 if self.rows is None else self.rows.nbytes)

    def add_to(self, total: Float[np.ndarray, " documents"]) -> None:
        """Add the scores in place, in single precision; both forms give the same bits."""
        if self.rows is None:
            total += self.scores
        else:
            np.add.at(total, self.rows.astype(np.intp, copy=False), self.scores)  # other types take longer

    def score_of(self, document: int) -> float:
        """The score of one document; 0 if it does not have the term."""
        if self.rows is None:
            return float(self.scores[document])
        at = int(np.searchsorted(self.rows, document))
        return float(self.scores[at]) if at < len(self.rows) and self.rows[at] == document else 0.0
