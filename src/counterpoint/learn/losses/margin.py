"""A margin to every other document of the batch (RepBERT)."""

from __future__ import annotations

from typing import final

from jaxtyping import Float
from torch import Tensor

from counterpoint.errors import ConfigError
from counterpoint.learn.loss import Loss
from counterpoint.learn.losses.entries import wide
from counterpoint.learn.step import Step
from counterpoint.score import Scorer

__all__ = ["MultiLabelMargin"]


@final
class MultiLabelMargin(Loss):
    """RepBERT's loss (Zhan et al. 2020): Σ max(0, m − s₊ + s₋) / n over the n documents of the batch.

    n includes the positive, as in PyTorch's `MultiLabelMarginLoss`, which RepBERT uses. RepBERT takes other
    documents known to be relevant as further positives. Here, as in all losses, they do not count.

    Args:
        name: the loss's name in logs.
        scorer: the scorer of s. None for the stage's.
        margin: m. RepBERT uses 1 for inner products. Cosines would reach it only at their extremes.
    """

    needs = frozenset({"batch"})

    def __init__(self, name: str | None = None, scorer: Scorer | None = None, margin: float = 1.0):
        super().__init__(name, scorer)
        if margin < 0:
            raise ConfigError(f"MultiLabelMargin: margin must be at least 0, found {margin}")
        self.margin = margin

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries. 0 for a query with no candidate but its positive."""
        scores, allowed = wide(self.scores(step)), step.targets.allowed
        positive = step.targets.positive[:, None]
        negatives = allowed.scatter(1, positive, False)
        hinge = (self.margin - scores.gather(1, positive) + scores).clamp(min=0).masked_fill(~negatives, 0)
        return (hinge.sum(1) / allowed.sum(1)).mean()
