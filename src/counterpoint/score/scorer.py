"""`Scorer`, sums and multiples of scorers, and helpers that find a scorer's vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import cast, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.part import Part
from counterpoint.types import Explanation
from counterpoint.vectors import Representation, Vectors
from counterpoint.weighted import Summand, check_weights

__all__ = ["Scorer", "Sum", "one_pair", "vector_sets", "weighted_explanation"]


class Scorer(Summand["Scorer", "Sum"], Part, ABC):
    """A score for every query and document, with an explanation. Abstract.

    Scorers can be added and weighted: `Dot("cls") + 0.3 * MaxSim("words")` is a scorer.
    """

    needs_vectors = True

    @abstractmethod
    def forward(self, q: Representation, d: Representation) -> Float[Tensor, "q d"]:
        """Score every query of `q` against every document of `d`. Padding never changes a score."""

    def batch_scores(
        self, q: Representation, d: Representation, own: Int[Tensor, "q n"]
    ) -> Float[Tensor, "q d"]:
        """Scores of a training batch. The same as `forward`, unless they depend on the batch's statistics.

        Args:
            q: the batch's queries.
            d: its documents.
            own: columns of each query's own documents, -1 where it has fewer.
        """
        return self(q, d)

    @abstractmethod
    def explain(self, q: Representation, d: Representation) -> Explanation:
        """Explain one document's score for one query. The root is the score, and the leaves sum to it.

        Leaves name rows of the two sets, counted over real rows only, as in `Vectors.ragged`.

        Raises:
            ShapeError: there is not exactly one query and one document.
        """

    @staticmethod
    def _sum(terms: Sequence[Scorer], weights: Sequence[float]) -> Sum:
        return Sum(terms, weights)


@final
class Sum(Scorer):
    """A weighted sum of scorers, built by `a + b` and `0.3 * a`. Nested sums are flattened.

    Args:
        parts: the scorers.
        weights: one number per scorer. None for 1 each.
    """

    def __init__(self, parts: Sequence[Scorer], weights: Sequence[float] | None = None):
        super().__init__()
        check_weights("Sum", "part", parts, weights)
        self.parts = nn.ModuleList(parts)
        self.weights = weights

    def forward(self, q: Representation, d: Representation) -> Float[Tensor, "q d"]:
        """The weighted sum of the parts' scores."""
        return torch.stack([weight * part(q, d) for part, weight in self._summands()]).sum(0)

    def batch_scores(
        self, q: Representation, d: Representation, own: Int[Tensor, "q n"]
    ) -> Float[Tensor, "q d"]:
        """The weighted sum of the parts' batch scores."""
        scores = [weight * part.batch_scores(q, d, own) for part, weight in self._summands()]
        return torch.stack(scores).sum(0)

    def explain(self, q: Representation, d: Representation) -> Explanation:
        """One child per part, with its weight applied."""
        children = [weighted_explanation(part.explain(q, d), weight) for part, weight in self._summands()]
        return Explanation("sum", self(q, d).item(), tuple(children))

    def _summands(self) -> list[tuple[Scorer, float]]:
        weights = self.weights or [1.0] * len(self.parts)
        return list(zip(cast(Sequence[Scorer], self.parts), weights, strict=True))


def weighted_explanation(explanation: Explanation, weight: float) -> Explanation:
    """Multiply an explanation by a weight. Its label shows the weight unless it is 1."""
    label = explanation.label if weight == 1 else f"{weight:.4g} × {explanation.label}"
    return replace(explanation.scaled(weight), label=label)


def vector_sets(q: Representation, d: Representation, on: str) -> tuple[Vectors, Vectors]:
    """The set named `on` of both sides.

    Raises:
        ConfigError: a side has no such set.
        ShapeError: the two sets' vectors have different dimensions.
    """
    for side, representation in (("query", q), ("document", d)):
        if on not in representation:
            has = ", ".join(representation) or "none"
            raise ConfigError(f"no vector set {on!r} on the {side} side; it has {has}")
    queries, documents = q[on], d[on]
    if queries.values.shape[2] != documents.values.shape[2]:
        raise ShapeError(
            f"vector set {on!r}: query vectors have {queries.values.shape[2]} components, document vectors "
            f"{documents.values.shape[2]}; encode both with the same model"
        )
    return queries, documents


def one_pair(q: Representation, d: Representation, on: str) -> tuple[Vectors, Vectors]:
    """The set named `on` of one query and one document, without gradients and padding rows.

    Raises:
        ShapeError: there is not exactly one query and one document.
    """
    queries, documents = vector_sets(q, d, on)
    if len(queries) != 1 or len(documents) != 1:
        raise ShapeError(
            f"explain takes one query and one document, found {len(queries)} and {len(documents)}; "
            "call it once per pair"
        )
    return _without_padding(queries), _without_padding(documents)


def _without_padding(one: Vectors) -> Vectors:
    """Remove the padding rows of one set, so that row numbers count real rows."""
    real = one.mask[0]
    ids = None if one.ids is None else one.ids[:, real]
    return Vectors(one.values.detach()[:, real], one.mask[:, real], ids)
