"""Losses that balance a router's keys and keep its weights small (CITADEL)."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from typing import final

from jaxtyping import Float
from torch import Tensor

from counterpoint.encode import BY_GATE, BY_LOAD
from counterpoint.errors import ConfigError
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.loss import Loss, SetTraits
from counterpoint.learn.losses.entries import own_documents, wide
from counterpoint.learn.step import Step
from counterpoint.vectors import Representation, Vectors

__all__ = ["RouterBalance", "RouterSparsity"]


class OfRouter(Loss, ABC):
    """A loss of what a router makes beside its vector set. Abstract.

    Args:
        on: the routed vector set.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, name: str | None = None):
        super().__init__(name)
        self.on = on

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """The set has no router."""
        if self.on in sets and not sets[self.on].routed:
            yield f"{self.label} needs the router of {self.on!r}, which has none; make it Routed(Router())"

    def _beside(self, sets: Representation, end: str) -> Vectors:
        if self.on + end not in sets:
            raise ConfigError(
                f"{self.label}: {self.on!r} has no router that is being trained; give the encoder a head "
                "Routed(Router()) of that name, and let it learn"
            )
        return sets[self.on + end]


@final
class RouterBalance(OfRouter):
    """Σ over keys of (mean tokens sent to it) · (mean sum of their softmax), of queries plus of documents.

    Li et al. 2023, the load balancing loss. As in their released code, the mean is over texts, after sums
    over a text's tokens. A token is sent to a key if its weight is above 0. Counts have no gradient, but the
    softmax has, so overloaded keys become less likely. The released code also adds the softmax of padding,
    which is left out here.

    Args:
        on: the routed vector set.
        name: the loss's name in logs.
    """

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The sum of both sides.

        Raises:
            ConfigError: the set has no router, or one that does not learn.
        """
        queries, documents = self._beside(step.q, BY_LOAD), self._beside(step.d, BY_LOAD)
        return _unevenness(queries.values) + _unevenness(documents.values[own_documents(step)])


@final
class RouterSparsity(OfRouter):
    """The sum of a document's weights over its tokens and keys, averaged over documents.

    Li et al. 2023, the L1 regularisation.

    Args:
        on: the routed vector set.
        name: the loss's name in logs.
    """

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over documents.

        Raises:
            ConfigError: as for `RouterBalance`.
        """
        found = self._beside(step.d, BY_GATE)
        return wide(found.values[..., 0]).masked_fill(~found.mask, 0).sum(1)[own_documents(step)].mean()


def _unevenness(load: Float[Tensor, "b 2 v"]) -> Float[Tensor, ""]:
    return wide(load[:, 0]).mean(0) @ wide(load[:, 1]).mean(0)
