"""`Step`: all that a loss may look at. A loss never sees the model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from counterpoint.vectors import Representation

__all__ = ["Step", "Targets"]


@dataclass(frozen=True)
class Targets:
    """What is right, for a batch of `q` queries and `d` documents.

    Attributes:
        own: the columns of each query's own documents, its positive first; -1 where a query has fewer.
        candidates: False where a document must not count as a negative of a query, because it is known to be
            relevant and is not the positive that was drawn. The positive's own entry is True.
        teacher: a teacher's scores of the documents in `own`, NaN where it has none.
        cached: this model's scores of the negative cache's candidates, without gradients (DAFT).
    """

    own: Int[Tensor, "q n"]
    candidates: Bool[Tensor, "q d"]
    teacher: Float[Tensor, "q n"] | None = None
    cached: Float[Tensor, "q k"] | None = None

    def to(self, device: torch.device | str) -> Targets:
        """The same targets on another device."""
        teacher = None if self.teacher is None else self.teacher.to(device)
        cached = None if self.cached is None else self.cached.to(device)
        return Targets(self.own.to(device), self.candidates.to(device), teacher, cached)

    @property
    def positive(self) -> Int[Tensor, " q"]:
        """The column of each query's positive."""
        return self.own[:, 0]


@dataclass(frozen=True)
class Step:
    """One step's vectors, scores and targets; under several processes, of all of them.

    Attributes:
        q: the queries' vector sets.
        d: the documents' vector sets, of every document of the batch.
        scores: of the stage's scorer.
        targets: what is right.
    """

    q: Representation
    d: Representation
    scores: Float[Tensor, "q d"]
    targets: Targets
