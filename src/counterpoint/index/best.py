"""The best of many scores, without sorting them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["Among", "best_among", "best_of"]

Among = Bool[np.ndarray, " n"] | None
"""For every document whether it may be found; None where all may."""

GROUPS = 1024  # of scores, each group's maximum taken before the best are looked for


def best_of(scores: Float[np.ndarray, " n"], k: int, *, matching: bool) -> Int[np.ndarray, " c"]:
    """Positions of the best `k`, of equal ones the first; fewer are always among more.

    Where words must match, a document that has none of them is no candidate.
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
    """`best_of` the documents that may be found."""
    if among is None:
        return best_of(scores, k, matching=matching)
    positions = np.flatnonzero(among)
    return positions[best_of(scores[positions], k, matching=matching)]


def _bound(scores: Float[np.ndarray, " n"], k: int) -> float:
    """A number that at least `k` scores reach: few of the others do, and they are quickly told apart."""
    groups = max(GROUPS, 4 * k)
    if len(scores) < 2 * groups:
        return -np.inf
    whole = len(scores) - len(scores) % groups
    return np.partition(scores[:whole].reshape(-1, groups).max(axis=0), -k)[-k]
