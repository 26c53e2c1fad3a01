"""The distance of queries' vectors to those of their positives: one encoder learns to match another."""

from __future__ import annotations

from typing import final

from jaxtyping import Float
from torch import Tensor

from counterpoint.errors import ConfigError
from counterpoint.learn.loss import Loss
from counterpoint.learn.losses.entries import wide
from counterpoint.learn.step import Step

__all__ = ["PositiveDistance"]


@final
class PositiveDistance(Loss):
    """‖q − d₊‖², averaged over queries. For unit vectors this is 2 − 2·cos(q, d₊).

    The loss has no negatives, so use it only if the document side does not learn. Otherwise all vectors move
    to one point. With `Train(mirror=True)` both sides read the same text, and the query encoder becomes a
    smaller copy of the document encoder. (Campos et al. 2023, "Quick Dense Retrievers Consume KALE", align a
    pruned query encoder with the vectors that the full one gives the same queries. They use a KL divergence.)

    Args:
        on: a pooled vector set.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, name: str | None = None):
        super().__init__(name)
        self.on = on

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries.

        Raises:
            ConfigError: the set has several vectors per text.
        """
        queries, documents = step.q[self.on], step.d[self.on]
        if queries.values.shape[1] != 1 or documents.values.shape[1] != 1:
            raise ConfigError(f"{self.label}: takes one vector per text, and {self.on!r} has several")
        positives = documents.values[step.targets.positive, 0]
        return (wide(queries.values[:, 0]) - wide(positives)).square().sum(1).mean()
