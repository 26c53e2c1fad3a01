"""Losses that teach a dense model what BM25 misses: orthogonality (RoC) and residual margin (CLEAR)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from counterpoint.errors import ConfigError
from counterpoint.index import project_terms
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.lexical import bm25_scores, lexical_set
from counterpoint.learn.limits import too_low
from counterpoint.learn.loss import Loss, SetTraits, not_pooled
from counterpoint.learn.losses.entries import own_entries, own_negatives, wide
from counterpoint.learn.step import Step
from counterpoint.score import Scorer
from counterpoint.vectors import Vectors

__all__ = ["Orthogonality", "ResidualMargin", "squared_cosines"]


@final
class Orthogonality(Loss):
    """cos²(q_lex, q_sem) + cos²(d_lex, d_sem) (Lee et al. 2023, eq. 8), each averaged over the batch.

    The lexical vectors are BM25's, projected at random to the dimension of the semantic ones (eq. 3). The
    projection is fixed and has no gradient. Every encoded document counts, positives and negatives alike. The
    cosine counts as 0 if a text has no known term or its vector is 0.

    Independent directions have cos² of 1/k on average in k dimensions, so the loss begins near its floor of
    2/k (.0026 at 768). Judge it by RoC, not by its own decrease.

    Args:
        on: a pooled vector set.
        seed: of the projection.
        name: the loss's name in logs.
    """

    needs = frozenset({"lexical"})

    def __init__(self, on: str, seed: int = 0, name: str | None = None):
        super().__init__(name)
        if seed < 0:
            raise ConfigError(f"Orthogonality: seed must be at least 0, found {seed}")
        self.on = on
        self.seed = seed

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """The set has several vectors per text."""
        yield from not_pooled(self.label, self.on, sets)

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries plus the mean over documents.

        Raises:
            ConfigError: the set has several vectors per text, or the stage has no lexical vectors.
        """
        sides = zip((step.q[self.on], step.d[self.on]), lexical_set(step, self.label), strict=True)
        return torch.stack([self._of(semantic, lexical) for semantic, lexical in sides]).sum()

    def _of(self, semantic: Vectors, lexical: Vectors) -> Float[Tensor, ""]:
        if semantic.values.shape[1] != 1:
            raise ConfigError(f"{self.label}: takes one vector per text, and {self.on!r} has several")
        there = semantic.mask[:, 0]
        vectors = wide(semantic.values[:, 0][there])
        projected = torch.from_numpy(project_terms(lexical.ragged(), vectors.shape[1], self.seed))
        return squared_cosines(projected.to(vectors)[there], vectors).sum() / max(len(vectors), 1)


@final
class ResidualMargin(Loss):
    """CLEAR's hinge (Gao et al. 2021): max(0, m − s₊ + s₋) with m = ξ − λ(b₊ − b₋), where b are BM25 scores.

    If BM25 ranks the negative first, the margin grows and the model has more to learn. If BM25 leads by more
    than ξ/λ, the margin is negative, and scores that agree have loss 0. The loss is averaged over a query's
    own negatives, then over queries. A negative from any source gets its true BM25 score.

    Args:
        name: the loss's name in logs.
        scorer: the scorer of s. None for the stage's.
        xi: ξ, the margin where both BM25 scores are equal.
        lam: λ, the weight of a BM25 point. 0 for a hinge without BM25.
    """

    needs = frozenset({"lexical", "negatives"})

    def __init__(
        self, name: str | None = None, scorer: Scorer | None = None, xi: float = 1.0, lam: float = 0.1
    ):
        super().__init__(name, scorer)
        self.xi = xi
        self.lam = lam
        if faults := too_low(self, "ResidualMargin", xi=0, lam=0):
            raise ConfigError(*faults)

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries. 0 for a query without negatives.

        Raises:
            ConfigError: the stage has no lexical vectors.
        """
        own, negatives = step.targets.own, own_negatives(step.targets)
        scores, _ = own_entries(self.scores(step), own)
        lexical, _ = own_entries(bm25_scores(step, self.label), own)
        margins = self.xi - self.lam * (lexical[:, :1] - lexical)
        hinge = (margins - scores[:, :1] + scores).clamp(min=0).masked_fill(~negatives, 0)
        return (hinge.sum(1) / negatives.sum(1).clamp(min=1)).mean()


def squared_cosines(a: Float[Tensor, "n k"], b: Float[Tensor, "n k"]) -> Float[Tensor, " n"]:
    """cos² of each pair of rows. 0, with gradient 0, if either row is 0."""
    return (functional.normalize(a, dim=-1) * functional.normalize(b, dim=-1)).sum(-1).square()
