"""The scores of one term, in the form that is added up fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.kernel_names import Kernels

__all__ = ["ScoreColumn"]

FREQUENT = 4
"""A term in more than 1/`FREQUENT` of the documents stores a score for every document.

Adding whole arrays is much faster than adding at given rows.
"""


@final
@dataclass(frozen=True)
class ScoreColumn:
    """The contribution of one term to the score of each document.

    Attributes:
        rows: the documents with the term, ascending; None if `scores` covers every document.
        scores: of these documents.
    """

    rows: Int[np.ndarray, " p"] | None
    scores: Float[np.ndarray, " p"]

    @staticmethod
    def of(rows: Int[np.ndarray, " p"], scores: Float[np.ndarray, " p"], documents: int) -> ScoreColumn:
        """Choose the faster form for these scores; `documents` is the size of the collection."""
        if FREQUENT * len(rows) <= documents:
            return ScoreColumn(rows, scores)
        every = np.zeros(documents, np.float32)
        every[rows] = scores
        return ScoreColumn(None, every)

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return self.scores.nbytes + (0 if self.rows is None else self.rows.nbytes)

    def add_to(self, total: Float[np.ndarray, " documents"], kernels: Kernels | None = None) -> None:
        """Add the scores in place, in single precision; both forms, and the kernels, give the same bits."""
        if self.rows is None:
            total += self.scores
        elif kernels is not None:
            kernels.add_scores(total, self.rows, self.scores)
        else:
            np.add.at(total, self.rows.astype(np.intp, copy=False), self.scores)  # other types take longer

    def score_of(self, document: int) -> float:
        """The score of one document; 0 if the term does not occur in it."""
        if self.rows is None:
            return float(self.scores[document])
        at = int(np.searchsorted(self.rows, document))
        return float(self.scores[at]) if at < len(self.rows) and self.rows[at] == document else 0.0
