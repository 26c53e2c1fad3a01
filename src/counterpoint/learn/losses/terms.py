"""Sparsity of a learned sparse representation: L1, or an inverted index's expected cost (FLOPS)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, final

from jaxtyping import Float
from torch import Tensor

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.loss import Loss, SetTraits
from counterpoint.learn.losses.entries import own_documents, wide
from counterpoint.learn.step import Step
from counterpoint.types import Side
from counterpoint.vectors import Vectors

__all__ = ["TermSparsity"]


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
        if self.norm == "flops" and self.on in sets and not sets[self.on].ids:
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
