"""Steps of a cross-encoder. It scores pairs, so a step has scores of a query's own documents only."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.learn.batches import Batch
from counterpoint.learn.step import Step, Targets

__all__ = ["cross_step", "own_pairs", "own_places"]


def own_places(targets: Targets) -> list[tuple[int, int]]:
    """Rows and columns of each query with each of its own documents, query by query."""
    return [(row, column) for row, own in enumerate(targets.own.tolist()) for column in own if column >= 0]


def own_pairs(batch: Batch) -> tuple[list[str], list[str]]:
    """The texts of `own_places`: a list of queries and a list of documents."""
    places = own_places(batch.targets)
    return [batch.queries[row] for row, _ in places], [batch.documents[column] for _, column in places]


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
