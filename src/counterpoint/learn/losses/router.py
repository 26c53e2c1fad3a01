"""Losses that balance a router's keys and keep its weights small (CITADEL)."""

from __future__ import annotations

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


@final
class RouterBalance(Loss):
    """Σ over keys of (mean tokens sent to it) · (mean sum of their softmax), of queries plus of documents.

    Li et al. 2023, the load balancing loss. As in their released code, the mean is over texts, after sums
    over a text's tokens. A token is sent to a key if its weight is above 0. Counts have no gradient, but the
    softmax has, so overloaded keys become less likely. The released code also adds the softmax of padding,
    which is left out here.

    Args:
        on: the routed vector set.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, name: str | None = None):
        super().__init__(name)
        self.on = on

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """The set has no router."""
        yield from _unrouted(self, self.on, sets)

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The sum of both sides.

        Raises:
            ConfigError: the set has no router, or one that does not learn.
        """
        queries, documents = _beside(self, step.q, BY_LOAD), _beside(self, step.d, BY_LOAD)
        return _unevenness(queries.values) + _unevenness(documents.values[own_documents(step)])


@final
class RouterSparsity(Loss):
    """The sum of a document's weights over its tokens and keys, averaged over documents.

    Li et al. 2023, the L1 regularisation.

    Args:
        on: the routed vector set.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, name: str | None = None):
        super().__init__(name)
        self.on = on

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """The set has no router."""
        yield from _unrouted(self, self.on, sets)

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over documents.

        Raises:
            ConfigError: as for `RouterBalance`.
        """
        found = _beside(self, step.d, BY_GATE)
        return wide(found.values[..., 0]).masked_fill(~found.mask, 0).sum(1)[own_documents(step)].mean()


def _unrouted(loss: Loss, on: str, sets: Mapping[str, SetTraits]) -> Iterator[str]:
    if on in sets and not sets[on].routed:
        yield f"{loss.label} needs the router of {on!r}, which has none; make it Routed(Router())"


def _unevenness(load: Float[Tensor, "b 2 v"]) -> Float[Tensor, ""]:
    return wide(load[:, 0]).mean(0) @ wide(load[:, 1]).mean(0)


def _beside(loss: Loss, sets: Representation, end: str) -> Vectors:
    on = getattr(loss, "on", "")
    if on + end not in sets:
        raise ConfigError(
            f"{loss.label}: {on!r} has no router that is being trained; give the encoder a head "
            "Routed(Router()) of that name, and let it learn"
        )
    return sets[on + end]
