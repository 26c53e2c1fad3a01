"""Losses that keep a representation sparse: gates (ColBERTer), routers (CITADEL), terms (L1, FLOPS)."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, final

from jaxtyping import Float
from torch import Tensor

from counterpoint.encode import BY_GATE, BY_LOAD
from counterpoint.errors import ConfigError, ShapeError
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.loss import Loss, SetTraits
from counterpoint.learn.losses.entries import own_documents, own_entries, wide
from counterpoint.learn.step import Step
from counterpoint.types import Side
from counterpoint.vectors import Representation, Vectors

__all__ = ["GateSparsity", "RouterBalance", "RouterSparsity", "TermSparsity"]


@final
class GateSparsity(Loss):
    """The gate's openness: mean r of the positives' rows plus mean r of the negatives' rows.

    ColBERTer, equation 20, ‖r⁺‖₁ + ‖r⁻‖₁ for the passages of a pair. The paper does not say how it averages.
    Here the mean is over a passage's rows, then over passages, so that the weight α_CS does not depend on
    lengths or on the batch. A passage without rows counts as 0.

    Args:
        on: the gated vector set.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, name: str | None = None):
        super().__init__(name)
        self.on = on

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """The set has no gate."""
        if not sets[self.on].gated:
            yield (
                f"{self.label} closes the gate of {self.on!r}, and the model has none there; give it "
                f"DualEncoder(..., gates={{{self.on!r}: Gate()}})"
            )

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over positives, plus the mean over negatives if there are any.

        Raises:
            ConfigError: documents have no gate on the set.
        """
        gates = step.d.get(self.on + BY_GATE)
        if gates is None:
            raise ConfigError(
                f"{self.label}: documents have no gate on {self.on!r}; give the model "
                f"DualEncoder(..., gates={{{self.on!r}: Gate()}})"
            )
        open_ = wide(gates.values[..., 0]).masked_fill(~gates.mask, 0)
        passages = open_.sum(1) / gates.mask.sum(1).clamp(min=1)
        own, there = own_entries(passages.expand(len(step.targets.own), -1), step.targets.own)
        loss = own[:, 0].mean()
        negatives = there[:, 1:]
        return loss + own[:, 1:][negatives].mean() if negatives.any() else loss


class OfRouter(Loss, ABC):
    """A loss of what a router makes in addition to its vector set. Abstract."""

    def __init__(self, on: str, name: str | None = None):
        super().__init__(name)
        self.on = on

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """The set has no router."""
        if not sets[self.on].routed:
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

    Args: as `RouterBalance`.
    """

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over documents.

        Raises:
            ConfigError: as for `RouterBalance`.
        """
        found = self._beside(step.d, BY_GATE)
        return wide(found.values[..., 0]).masked_fill(~found.mask, 0).sum(1)[own_documents(step)].mean()


@final
class TermSparsity(Loss):
    """The size of the terms' weights, of queries plus of documents.

    w_ij is the weight of term j in text i of n. "flops": Σ_j (1/n Σ_i |w_ij|)² (Paria et al. 2020,
    "Minimizing FLOPs to learn efficient sparse representations"). It penalises most the terms that occur in
    many texts, which cost an inverted index most. "l1": 1/n Σ_i Σ_j |w_ij|.

    Args:
        on: the set of terms.
        norm: "flops" or "l1".
        sides: the sides whose texts count. Each document that is some query's own counts once.
        name: the loss's name in logs.
    """

    def __init__(
        self,
        on: str,
        norm: Literal["flops", "l1"] = "flops",
        sides: Sequence[Side] = ("query", "document"),
        name: str | None = None,
    ):
        super().__init__(name)
        if norm not in ("flops", "l1"):
            raise ConfigError(f"TermSparsity: norm must be 'flops' or 'l1', found {norm!r}")
        if not sides or set(sides) - {"query", "document"}:
            raise ConfigError(f"TermSparsity: sides are 'query', 'document' or both, found {sides!r}")
        self.on = on
        self.norm: Literal["flops", "l1"] = norm
        self.sides = sides

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """FLOPS needs rows with ids."""
        if self.norm == "flops" and not sets[self.on].ids:
            yield (
                f"{self.label}: 'flops' is by term, and the rows of {self.on!r} have no ids; name a set "
                "of terms, or use norm='l1'"
            )

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The sum over the sides.

        Raises:
            ConfigError: there is no such set.
            ShapeError: "flops" on rows without ids.
        """
        found = step.scores.new_zeros(())
        for side in self.sides:
            sets = step.q if side == "query" else step.d
            if self.on not in sets:
                raise ConfigError(f"{self.label}: no vector set {self.on!r}; there are {', '.join(sets)}")
            texts = sets[self.on] if side == "query" else sets[self.on].take(own_documents(step))
            found = found + self._size(texts)
        return found

    def _size(self, texts: Vectors) -> Float[Tensor, ""]:
        weights = wide(texts.values).abs().sum(-1).masked_fill(~texts.mask, 0)
        if self.norm == "l1":
            return weights.sum(1).mean()
        if texts.ids is None:
            raise ShapeError(f"{self.label}: 'flops' is by term, and the rows of {self.on!r} have no ids")
        _, terms = texts.ids.unique(return_inverse=True)
        totals = weights.new_zeros(int(terms.max()) + 1 if terms.numel() else 0)
        totals = totals.index_add(0, terms.flatten(), weights.flatten())
        return (totals / len(texts)).square().sum()


def _unevenness(load: Float[Tensor, "b 2 v"]) -> Float[Tensor, ""]:
    return wide(load[:, 0]).mean(0) @ wide(load[:, 1]).mean(0)
