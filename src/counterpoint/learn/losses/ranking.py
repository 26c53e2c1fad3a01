"""Losses that compare a query's positive with its own negatives only."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from counterpoint.learn.loss import Loss
from counterpoint.learn.losses.entries import cross_entropy, own_entries, own_negatives
from counterpoint.learn.step import Step

__all__ = ["NegativeLogLikelihood", "PairwiseCrossEntropy", "PairwiseSoftmax"]


@final
class NegativeLogLikelihood(Loss):
    """−ln softmax at the positive, over it and the query's own negatives (Karpukhin et al. 2020, eq. 2).

    Args: as `Loss`.
    """

    needs = frozenset({"negatives"})

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries. 0 for a query without negatives."""
        own, _ = own_entries(self.scores(step), step.targets.own)
        allowed = own_negatives(step.targets)
        allowed[:, 0] = True
        return cross_entropy(own, allowed, step.targets.own.new_zeros(len(own))).mean()


@final
class PairwiseCrossEntropy(Loss):
    """ColBERT's loss on triples: −ln softmax over (positive, negative), for each own negative alone.

    ln(1 + e^(s₋ − s₊)), averaged over a query's own negatives, then over queries (Khattab and Zaharia 2020).
    With one negative per query it equals `NegativeLogLikelihood`. With more, it does not sum them in one
    softmax.

    Args: as `Loss`.
    """

    needs = frozenset({"negatives"})

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries. 0 for a query without negatives."""
        own, _ = own_entries(self.scores(step), step.targets.own)
        allowed = own_negatives(step.targets)
        pairs = functional.softplus(own - own[:, :1]).masked_fill(~allowed, 0)
        return (pairs.sum(1) / allowed.sum(1).clamp(min=1)).mean()


@final
class PairwiseSoftmax(Loss):
    """Isotropic DR's loss on triples: 1 − softmax over (positive, negative), for each own negative alone.

    σ(s₋ − s₊), averaged over a query's own negatives, then over queries. This follows the code of Jung et al.
    2023; the paper does not print it. The value is between 0 and 1. Unlike in `PairwiseCrossEntropy`, the
    gradient also vanishes where the negative leads by far.

    Args: as `Loss`.
    """

    needs = frozenset({"negatives"})

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries. 0 for a query without negatives."""
        own, _ = own_entries(self.scores(step), step.targets.own)
        allowed = own_negatives(step.targets)
        pairs = torch.sigmoid(own - own[:, :1]).masked_fill(~allowed, 0)
        return (pairs.sum(1) / allowed.sum(1).clamp(min=1)).mean()
