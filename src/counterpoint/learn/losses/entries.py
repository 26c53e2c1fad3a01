"""Helpers of the losses: select entries of a score matrix, in at least float32."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from counterpoint.learn.step import Step, Targets

__all__ = ["cross_entropy", "own_documents", "own_entries", "own_negatives", "wide"]


def wide(scores: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """Cast scores to at least float32. Half precision loses the differences of large scores."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def own_entries(
    scores: Float[Tensor, "q d"], own: Int[Tensor, "q n"]
) -> tuple[Float[Tensor, "q n"], Bool[Tensor, "q n"]]:
    """Scores of each query's own documents, and which entries are valid. The others hold any finite value."""
    return wide(scores).gather(1, own.clamp(min=0)), own >= 0


def own_negatives(targets: Targets) -> Bool[Tensor, "q n"]:
    """Which of each query's own documents count as its negatives. Never the first, its positive."""
    allowed = targets.allowed.gather(1, targets.own.clamp(min=0)) & (targets.own >= 0)
    allowed[:, 0] = False
    return allowed


def own_documents(step: Step) -> Int[Tensor, " k"]:
    """The documents of the batch that are some query's own, each once."""
    return step.targets.own[step.targets.own >= 0].unique()


def cross_entropy(
    logits: Float[Tensor, "q d"], allowed: Bool[Tensor, "q d"], positive: Int[Tensor, " q"]
) -> Float[Tensor, " q"]:
    """−ln softmax over each row's allowed documents, at the positive. Exactly 0 if it is the only one."""
    return functional.cross_entropy(logits.masked_fill(~allowed, -torch.inf), positive, reduction="none")
