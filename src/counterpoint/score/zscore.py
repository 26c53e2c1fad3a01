"""`ZScore`: late interaction on the scale of its own spread, so that several spaces add up (HIL)."""

from __future__ import annotations

import weakref
from typing import cast, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from counterpoint.errors import ConfigError
from counterpoint.score.maxsim import MaxSim
from counterpoint.score.scorer import Scorer
from counterpoint.types import Explanation
from counterpoint.vectors import Representation

__all__ = ["ZScore"]

FLOOR = 1e-6
"""The least σ: where all matches are equal, their differences are 0 whatever they are divided by."""


@final
class ZScore(Scorer):
    """A `MaxSim` whose matches S are put on one scale, S' = (S − m)/σ (Kim et al. 2024, HIL, section 3.3).

    In training, m and σ (of the population) are those of the batch: over every query row and every own
    document of its query. Exponential averages of both are kept. Outside of training the score is Σ S/σ with
    the σ kept: m takes the same from every document of a query, |q|·m/σ, and decides nothing. Until a batch
    has been seen, σ is 1. Statistics of a list of candidates are never used, or a score would depend on its
    length.

    Args:
        of: what is normalised; idf, if it has any, is applied before.
        momentum: of the averages, which are corrected for their beginning at the first batch.
        detach: take m and σ as constants; else gradients flow through them, as in batch normalisation.
    """

    mean_: Float[Tensor, ""]
    std_: Float[Tensor, ""]
    batches_: Int[Tensor, ""]

    def __init__(self, of: MaxSim, momentum: float = 0.99, detach: bool = False):
        super().__init__()
        if not 0 <= momentum < 1:
            raise ConfigError(f"ZScore: momentum must be from 0 up to below 1, found {momentum}")
        self.of, self.momentum, self.detach = of, momentum, detach
        self._kept: weakref.ref[Tensor] | None = None

    def _allocate(self) -> None:
        self.register_buffer("mean_", torch.tensor(0.0))
        self.register_buffer("std_", torch.tensor(1.0))
        self.register_buffer("batches_", torch.tensor(0))

    def forward(self, q: Representation, d: Representation) -> Float[Tensor, "q d"]:
        """Σ S/σ, by the σ that is kept."""
        return self.of(q, d) / self.std_

    def batch_scores(
        self, q: Representation, d: Representation, own: Int[Tensor, "q n"]
    ) -> Float[Tensor, "q d"]:
        """Σ S', by the m and σ of this batch, which go into the averages."""
        matches, rows = self.of.matches(q, d), q[self.of.on].mask
        of_own = matches.transpose(1, 2)[torch.arange(len(own), device=own.device)[:, None], own.clamp(min=0)]
        counted = of_own[(own >= 0)[:, :, None] & rows[:, None]]
        if not len(counted):  # no query has a row, so every score is 0
            return matches.sum(1)
        mean, std = counted.mean(), counted.var(unbiased=False).clamp(min=FLOOR**2).sqrt()
        if self._kept is None or self._kept() is not q[self.of.on].values:  # a loss may share this scorer
            self._keep(mean.detach(), std.detach())
            self._kept = weakref.ref(q[self.of.on].values)
        if self.detach:
            mean, std = mean.detach(), std.detach()
        return ((matches - mean) / std).masked_fill(~rows[:, :, None], 0).sum(1)

    def explain(self, q: Representation, d: Representation) -> Explanation:
        """The leaves of the part, by the σ that is kept."""
        inside = self.of.explain(q, d)
        children = inside.scaled(1 / self.std_.item()).children
        return Explanation(f"z({inside.label})", self(q, d).item(), children)

    @torch.no_grad()
    def _keep(self, mean: Float[Tensor, ""], std: Float[Tensor, ""]) -> None:
        """Move the averages: the first batch sets them, and the shares of all that were seen add up to 1."""
        self.batches_ += 1
        share = (1 - self.momentum) / (1 - self.momentum ** cast(int, self.batches_.item()))
        self.mean_.lerp_(mean.to(self.mean_), share)
        self.std_.lerp_(std.to(self.std_), share)
