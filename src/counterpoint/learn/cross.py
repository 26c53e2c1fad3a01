"""Training a cross-encoder: it scores pairs of texts, so a step holds scores of own documents only."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.learn.batches import Batch
from counterpoint.learn.step import Step, Targets

__all__ = ["cross_step", "own_pairs", "own_places"]


def own_places(targets: Targets) -> list[tuple[int, int]]:
    """Each query with each of its own documents, query by query: their rows and columns."""
    return [(row, column) for row, own in enumerate(targets.own.tolist()) for column in own if column >= 0]


def own_pairs(batch: Batch) -> tuple[list[str], list[str]]:
    """The texts of `own_places`, as one list a side."""
    places = own_places(batch.targets)
    return [batch.queries[row] for row, _ in places], [batch.documents[column] for _, column in places]


def cross_step(scores: Float[Tensor, " pairs"], targets: Targets) -> Step:
    """A step of the scores of `own_pairs`, in that order; gradients pass.

    All other documents stop being candidates, so a loss over the batch is one over each query's own. There
    are no vectors: a loss with a scorer of its own has nothing to go by.
    """
    rows, places = (targets.own >= 0).nonzero(as_tuple=True)
    at = rows, targets.own[rows, places]
    matrix = scores.new_zeros(targets.candidates.shape).index_put(at, scores)
    own = torch.zeros_like(targets.candidates).index_put(at, torch.ones_like(rows, dtype=torch.bool))
    return Step({}, {}, matrix, replace(targets, candidates=targets.candidates & own))
