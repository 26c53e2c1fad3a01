"""`ZScore`: late interaction divided by its standard deviation, so that several spaces can be added (HIL)."""

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
"""The smallest σ. If all matches are equal, their differences are 0 for any divisor."""


@final
class ZScore(Scorer):
    """A `MaxSim` whose matches S are standardised, S' = (S − m)/σ (Kim et al. 2024, HIL, section 3.3).

    In training, m and σ (population) are those of the batch, over every query row and every own document of
    its query. Exponential moving averages of both are stored. Outside training, the score is Σ S/σ with the
    stored σ: m subtracts the same |q|·m/σ from every document of a query, so it does not change the ranking.
    σ is 1 before the first batch. Statistics of a candidate list are never used, because a score would then
    depend on the list's length.

    Args:
        of: the scorer to standardise. Its idf, if any, is applied before.
        momentum: of the averages, which have a bias correction for the first batches.
        detach: treat m and σ as constants. Otherwise gradients flow through them, as in batch normalisation.
    """

    mean_: Float[Tensor, ""]
    std_: Float[Tensor, ""]
    batches_: Int[Tensor, ""]

    def __init__(self, of: MaxSim, momentum: float = 0.99, detach: bool = False):
        super().__init__()
        if not isinstance(of, MaxSim):
            raise ConfigError(f"ZScore: it standardises the matches of a MaxSim, found {type(of).__name__}")
        if not 0 <= momentum < 1:
            raise ConfigError(f"ZScore: momentum must be from 0 up to below 1, found {momentum}")
        self.of, self.momentum, self.detach = of, momentum, detach
        self._kept: weakref.ref[Tensor] | None = None

    def _allocate(self) -> None:
        self.register_buffer("mean_", torch.tensor(0.0))
        self.register_buffer("std_", torch.tensor(1.0))
        self.register_buffer("batches_", torch.tensor(0))

    def forward(self, q: Representation, d: Representation) -> Float[Tensor, "q d"]:
        """Σ S/σ with the stored σ."""
        return self.of(q, d) / self.std_

    def batch_scores(
        self, q: Representation, d: Representation, own: Int[Tensor, "q n"]
    ) -> Float[Tensor, "q d"]:
        """Σ S' with the m and σ of this batch, which also update the averages."""
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
        """The leaves of the `MaxSim`, divided by the stored σ."""
        inside = self.of.explain(q, d)
        children = inside.scaled(1 / self.std_.item()).children
        return Explanation(f"z({inside.label})", self(q, d).item(), children)

    @torch.no_grad()
    def _keep(self, mean: Float[Tensor, ""], std: Float[Tensor, ""]) -> None:
        """Update the averages. The first batch sets them, and the weights of all batches sum to 1."""
        self.batches_ += 1
        share = (1 - self.momentum) / (1 - self.momentum ** cast(int, self.batches_.item()))
        self.mean_.lerp_(mean.to(self.mean_), share)
        self.std_.lerp_(std.to(self.std_), share)
