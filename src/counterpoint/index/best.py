"""Select the best of many scores without sorting them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["Among", "best_among", "best_of"]

Among = Bool[np.ndarray, " n"] | None
"""For every document, whether it may be found; None if all may."""

GROUPS = 1024  # groups of scores, whose maxima bound the best


def best_of(scores: Float[np.ndarray, " n"], k: int, *, matching: bool) -> Int[np.ndarray, " c"]:
    """Positions of the best `k`, the first on ties; a smaller `k` gives a subset of a larger one.

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
    return np.concatenate([above, near[found == least][: k - len(above)]])


def best_among(
    scores: Float[np.ndarray, " n"], k: int, among: Among, *, matching: bool
) -> Int[np.ndarray, " c"]:
    """`best_of` the allowed documents."""
    if among is None:
        return best_of(scores, k, matching=matching)
    positions = np.flatnonzero(among)
    return positions[best_of(scores[positions], k, matching=matching)]


def _bound(scores: Float[np.ndarray, " n"], k: int) -> float:
    """A number that at least `k` scores reach, and few others, so that few are left to compare."""
    groups = max(GROUPS, 4 * k)
    if len(scores) < 2 * groups:
        return -np.inf
    whole = len(scores) - len(scores) % groups
    return np.partition(scores[:whole].reshape(-1, groups).max(axis=0), -k)[-k]
