"""Softmax over the batch or over a negative cache (DAFT, eq. 5), and a margin to the batch (RepBERT)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from counterpoint.config import renames
from counterpoint.errors import ConfigError
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.loss import Loss, SetTraits
from counterpoint.learn.losses.entries import cross_entropy, wide
from counterpoint.learn.step import Step, Targets
from counterpoint.score import Scorer

__all__ = ["CachedContrastive", "Contrastive", "MultiLabelMargin"]

Among = Literal["batch", "positives"]


@final
@renames(candidates="negatives")
class Contrastive(Loss):
    """−ln softmax(scale · s / temperature) at the positive, over documents of the batch (DAFT, eq. 5).

    DAFT uses scale 20 and temperature 1 on cosines. Documents known to be relevant are never negatives.

    Args:
        name: the loss's name in logs.
        scorer: the scorer of s. None for the stage's.
        temperature: τ.
        scale: factor of the scores.
        negatives: "batch": every document of the batch. "positives": the query's own documents and the other
            queries' positives, so that a hard negative counts only against its own query.
        symmetric: average with the same loss of each positive document over the batch's queries. Another
            query with the same positive is not a negative.
    """

    needs = frozenset({"batch"})

    def __init__(
        self,
        name: str | None = None,
        scorer: Scorer | None = None,
        temperature: float = 1.0,
        scale: float = 1.0,
        negatives: Among = "batch",
        symmetric: bool = False,
    ):
        super().__init__(name, scorer)
        if temperature <= 0:
            raise ConfigError(f"Contrastive: temperature must be above 0, found {temperature}")
        if negatives not in ("batch", "positives"):
            raise ConfigError(f"Contrastive: negatives must be 'batch' or 'positives', found {negatives!r}")
        self.temperature = temperature
        self.scale = scale
        self.negatives: Among = negatives
        self.symmetric = symmetric

    def faults_of_pairs(self) -> Iterator[str]:
        """`symmetric` needs a document's scores for several queries."""
        if self.symmetric:
            yield (
                f"{self.label}: symmetric compares a document's scores for several queries, and a "
                "cross-encoder scores a query's own documents only; omit it"
            )

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries. With `symmetric`, of both directions."""
        logits = wide(self.scores(step)) * (self.scale / self.temperature)
        targets = step.targets
        allowed = targets.allowed if self.negatives == "batch" else _positives_and_own(targets)
        loss = cross_entropy(logits, allowed, targets.positive).mean()
        return (loss + _over_queries(logits, targets)) / 2 if self.symmetric else loss


@final
class CachedContrastive(Loss):
    """DAFT's loss on its negative cache: many documents in the softmax, only two with a gradient.

    p₊ is the softmax of the positive among itself and the best of the cache's groups. The loss value is
    −ln p₊. Its gradient is that of (1 − p₊) · (s₋ − s₊) with p₊ held fixed. The negative s₋ is drawn with the
    softmax over these as probabilities, so in expectation this is the gradient of −ln p₊ over all of them
    (Lindgren et al. 2021). Of a query's own documents, the loss reads the positive and the first drawn
    negative. Excluded documents have the score −∞. A query without others has loss 0.

    It has no scorer of its own, because the stage's scorer scores the cache.

    Args:
        name: the loss's name in logs.
        scale: factor of the scores, including those of the cache.
    """

    needs = frozenset({"cache"})
    drawn = 1
    needs_vectors = True

    def __init__(self, name: str | None = None, scale: float = 1.0):
        super().__init__(name)
        self.scale = scale

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """The cache draws negatives with another scale."""
        if cache is not None and self.scale != cache.scale:
            yield (
                f"cache: negatives are drawn with scale {cache.scale:g}, but {self.label} has scale "
                f"{self.scale:g}; its gradient is that of the softmax only if they are equal"
            )

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean of −ln p₊ over queries, with the estimated gradient.

        Raises:
            ConfigError: the stage has no negative cache.
        """
        own, cached = step.targets.own, step.targets.cached
        if cached is None or own.shape[1] < 2:
            raise ConfigError(
                f"{self.label}: this step has no cached documents with a drawn negative; "
                "give the stage a cache=NegativeCache(...)"
            )
        scores = wide(step.scores) * self.scale
        positive = scores.gather(1, own[:, :1])
        with torch.no_grad():
            among = torch.cat([positive, wide(cached) * self.scale], 1)
            value = -among.log_softmax(1)[:, 0]
        drawn = scores.gather(1, own[:, 1:2].clamp(min=0))
        gap = (drawn - positive)[:, 0].masked_fill(own[:, 1] < 0, 0)
        estimate = -torch.expm1(-value) * gap
        return (value + estimate - estimate.detach()).mean()


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


def _positives_and_own(targets: Targets) -> Bool[Tensor, "q d"]:
    """Candidates without the other queries' negatives."""
    kept = torch.zeros_like(targets.allowed)
    kept[:, targets.positive] = True
    kept.scatter_(1, targets.own.where(targets.own >= 0, targets.positive[:, None]), True)
    return targets.allowed & kept


def _over_queries(logits: Float[Tensor, "q d"], targets: Targets) -> Float[Tensor, ""]:
    """The loss of each query's positive document over the queries of the batch."""
    positive = targets.positive
    itself = torch.arange(len(positive), device=positive.device)
    shared = positive[:, None] == positive
    allowed = (targets.allowed[:, positive].T & ~shared) | (itself[:, None] == itself)
    return cross_entropy(logits[:, positive].T, allowed, itself).mean()
