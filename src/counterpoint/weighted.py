"""`Summand`: what can be added and weighted, as in `a + 0.3 * b`. Scorers and losses share it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, cast

from counterpoint.errors import ConfigError

__all__ = ["Summand", "check_weights"]

Term = TypeVar("Term")
Whole = TypeVar("Whole")


class Summand(ABC, Generic[Term, Whole]):
    """A term of a weighted sum, or the sum itself. Nested sums are flattened. Abstract."""

    @staticmethod
    @abstractmethod
    def _sum(terms: Sequence[Term], weights: Sequence[float]) -> Whole:
        """The weighted sum of some terms. Only summands with the same `_sum` can be added."""

    def _summands(self) -> list[tuple[Term, float]]:
        """The terms with their weights. A term alone has weight 1."""
        return [(cast(Term, self), 1.0)]

    def __add__(self, other: Term) -> Whole:
        if not isinstance(other, Summand) or other._sum is not self._sum:
            return NotImplemented
        return self._sum(*_apart([*self._summands(), *other._summands()]))

    def __mul__(self, weight: float) -> Whole:
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            return NotImplemented
        return self._sum(*_apart([(term, weight * own) for term, own in self._summands()]))

    __rmul__ = __mul__


def _apart(weighted: list[tuple[Any, float]]) -> tuple[list[Any], list[float]]:
    return [term for term, _ in weighted], [weight for _, weight in weighted]


def check_weights(whole: str, term: str, terms: Sequence[object], weights: Sequence[float] | None) -> None:
    """Check that a sum has terms, and a weight for each of them.

    Raises:
        ConfigError: it has not.
    """
    count = len(terms) if weights is None else len(weights)
    if not len(terms) or count != len(terms):
        raise ConfigError(
            f"{whole} needs one weight for each {term}, found {len(terms)} of them, {count} weights"
        )
