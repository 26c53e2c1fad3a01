"""`Step`: everything that a loss may read. A loss never sees the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from counterpoint.vectors import Representation

__all__ = ["Step", "Targets", "cross_step"]


@dataclass(frozen=True)
class Targets:
    """The relevance targets of a batch of `q` queries and `d` documents.

    Attributes:
        own: columns of each query's own documents, its positive first. -1 where a query has fewer.
        allowed: False where a document is known to be relevant to a query and is not the positive that was
            drawn, so that it does not count as a negative. The positive's own entry is True.
        teacher: a teacher's scores of the documents in `own`, NaN where it has none.
        cached: this model's scores of the negatives from the cache, without gradients (DAFT).
    """

    own: Int[Tensor, "q n"]
    allowed: Bool[Tensor, "q d"]
    teacher: Float[Tensor, "q n"] | None = None
    cached: Float[Tensor, "q k"] | None = None

    def to(self, device: torch.device | str) -> Targets:
        """The same targets on another device."""
        teacher = None if self.teacher is None else self.teacher.to(device)
        cached = None if self.cached is None else self.cached.to(device)
        return Targets(self.own.to(device), self.allowed.to(device), teacher, cached)

    @property
    def positive(self) -> Int[Tensor, " q"]:
        """The column of each query's positive."""
        return self.own[:, 0]


@dataclass(frozen=True)
class Step:
    """The vectors, scores and targets of one step, gathered from all processes.

    Attributes:
        q: the queries' vector sets.
        d: the vector sets of every document of the batch.
        scores: the stage's scorer's scores.
        targets: the relevance targets.
    """

    q: Representation
    d: Representation
    scores: Float[Tensor, "q d"]
    targets: Targets


def cross_step(scores: Float[Tensor, " pairs"], targets: Targets) -> Step:
    """Make a step from the scores of `own_pairs`, in that order. Gradients pass through.

    All other documents stop being allowed, so a loss over the batch becomes one over each query's own
    documents. There are no vectors, so a loss with its own scorer cannot be computed.
    """
    rows, places = (targets.own >= 0).nonzero(as_tuple=True)
    at = rows, targets.own[rows, places]
    matrix = scores.new_zeros(targets.allowed.shape).index_put(at, scores)
    own = torch.zeros_like(targets.allowed).index_put(at, torch.ones_like(rows, dtype=torch.bool))
    return Step({}, {}, matrix, replace(targets, allowed=targets.allowed & own))
