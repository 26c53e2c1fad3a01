"""What the losses share: the entries of a score matrix that they are about, in at least float32."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from counterpoint.learn.step import Step, Targets

__all__ = ["cross_entropy", "own_documents", "own_entries", "own_negatives", "wide"]


def wide(scores: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The same scores in at least float32: half precision has no room for the differences of large ones."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def own_entries(
    scores: Float[Tensor, "q d"], own: Int[Tensor, "q n"]
) -> tuple[Float[Tensor, "q n"], Bool[Tensor, "q n"]]:
    """Scores of each query's own documents, and which of them are there; the others hold anything finite."""
    return wide(scores).gather(1, own.clamp(min=0)), own >= 0


def own_negatives(targets: Targets) -> Bool[Tensor, "q n"]:
    """Which of each query's own documents count as negatives of it; never the first, its positive."""
    allowed = targets.candidates.gather(1, targets.own.clamp(min=0)) & (targets.own >= 0)
    allowed[:, 0] = False
    return allowed


def own_documents(step: Step) -> Int[Tensor, " k"]:
    """The documents of the batch that are some query's own, each once."""
    return step.targets.own[step.targets.own >= 0].unique()


def cross_entropy(
    logits: Float[Tensor, "q d"], candidates: Bool[Tensor, "q d"], positive: Int[Tensor, " q"]
) -> Float[Tensor, " q"]:
    """−ln softmax over each row's candidates, at the positive; exactly 0 where that is the only one."""
    return functional.cross_entropy(logits.masked_fill(~candidates, -torch.inf), positive, reduction="none")
