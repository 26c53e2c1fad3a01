"""Select the best of many scores without sorting them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["EVERY", "Among", "best_among", "best_of"]


@final
@dataclass(frozen=True)
class Among:
    """Which documents a search may find, and which of them is first on ties.

    Attributes:
        allowed: for every position, whether its document may be found; None if all may.
        order: for every position, a number; the lowest is first on ties. None for the position itself.
    """

    allowed: Bool[np.ndarray, " n"] | None = None
    order: Int[np.ndarray, " n"] | None = None

    def within(self, start: int, end: int) -> Among:
        """The same for the positions from `start` to before `end`."""
        parts = (None if each is None else each[start:end] for each in (self.allowed, self.order))
        return Among(*parts)

    def at(self, positions: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"] | None:
        """The order of some positions; None if it is that of the positions."""
        return None if self.order is None else self.order[positions]


EVERY = Among()

GROUPS = 1024  # groups of scores, whose maxima bound the best


def best_of(
    scores: Float[np.ndarray, " n"], k: int, *, matching: bool, order: Int[np.ndarray, " n"] | None = None
) -> Int[np.ndarray, " c"]:
    """Positions of the best `k`, the first on ties; a smaller `k` gives a subset of a larger one.

    With `order`, those with the lowest numbers there are first on ties.

    With `matching`, documents that score 0 or less are left out: none of the query's words is in them.
    """
    k = min(k, len(scores))
    if not k:
        return np.zeros(0, np.int64)
    bound = _bound(scores, k)
    near = np.flatnonzero(scores > 0 if matching and bound <= 0 else scores >= bound)
    if len(near) < k:
        return near
    found = scores[near]
    least = np.partition(found, -k)[-k]
    above = near[found > least]
    ties, left = near[found == least], k - len(above)
    if order is not None and left < len(ties):
        ties = ties[np.argpartition(order[ties], left - 1)]
    return np.concatenate([above, ties[:left]])


def best_among(
    scores: Float[np.ndarray, " n"], k: int, among: Among, *, matching: bool
) -> Int[np.ndarray, " c"]:
    """`best_of` the allowed documents."""
    if among.allowed is None:
        return best_of(scores, k, matching=matching, order=among.order)
    positions = np.flatnonzero(among.allowed)
    return positions[best_of(scores[positions], k, matching=matching, order=among.at(positions))]


def _bound(scores: Float[np.ndarray, " n"], k: int) -> float:
    """A number that at least `k` scores reach, and few others, so that few are left to compare."""
    groups = max(GROUPS, 4 * k)
    if len(scores) < 2 * groups:
        return -np.inf
    whole = len(scores) - len(scores) % groups
    return np.partition(scores[:whole].reshape(-1, groups).max(axis=0), -k)[-k]
