"""`Mix`: a weighted mean of scorers with learnt weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from counterpoint.errors import ConfigError, NotFittedError
from counterpoint.score.scorer import Scorer, weighted_explanation
from counterpoint.types import Explanation
from counterpoint.vectors import Representation

__all__ = ["Mix"]


@final
class Mix(Scorer):
    """A convex combination with learnt weights, softmax(γ₁, …, γₙ₋₁, 0), which start equal.

    For two parts this is ColBERTer's σ(γ)·a + (1 − σ(γ))·b with one learnt γ (Hofstätter et al. 2022).

    Args:
        parts: the scorers, at least two.
    """

    gamma_: nn.Parameter

    def __init__(self, parts: Sequence[Scorer]):
        super().__init__()
        if len(parts) < 2:
            raise ConfigError(f"Mix needs at least two parts, found {len(parts)}")
        self.parts = nn.ModuleList(parts)

    def _allocate(self) -> None:
        self.gamma_ = nn.Parameter(torch.zeros(len(self.parts) - 1))

    @property
    def weights(self) -> Float[Tensor, " parts"]:
        """The current weights, which sum to 1.

        Raises:
            NotFittedError: before `setup()`.
        """
        if not self.is_set_up:
            raise NotFittedError("Mix has no weights yet; call setup() on the model first")
        return torch.cat([self.gamma_, self.gamma_.new_zeros(1)]).softmax(0)

    def forward(self, q: Representation, d: Representation) -> Float[Tensor, "q d"]:
        """The weighted sum of the parts' scores. Gradients reach the weights."""
        return self._mixed([part(q, d) for part in self.parts])

    def batch_scores(
        self, q: Representation, d: Representation, own: Int[Tensor, "q n"]
    ) -> Float[Tensor, "q d"]:
        """The weighted sum of the parts' batch scores."""
        return self._mixed([part.batch_scores(q, d, own) for part in cast(Sequence[Scorer], self.parts)])

    def explain(self, q: Representation, d: Representation) -> Explanation:
        """One child per part, with its current weight applied."""
        weights = self.weights.tolist()
        parts = zip(cast(Sequence[Scorer], self.parts), weights, strict=True)
        children = [weighted_explanation(part.explain(q, d), weight) for part, weight in parts]
        return Explanation("mix", self(q, d).item(), tuple(children))

    def _mixed(self, scores: Sequence[Float[Tensor, "q d"]]) -> Float[Tensor, "q d"]:
        return (torch.stack(list(scores), -1) * self.weights).sum(-1)
