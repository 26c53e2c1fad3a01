"""The best of many scores, without sorting them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

__all__ = ["best_of"]

GROUPS = 1024  # of scores, each group's maximum taken before the best are looked for


def best_of(scores: Float[np.ndarray, " n"], k: int, *, matching: bool) -> Int[np.ndarray, " c"]:
    """Positions of the best `k`, of equal ones the first; fewer are always among more.

    Where words must match, a document that has none of them is no candidate.
    """
    k = min(k, len(scores))
    bound = _bound(scores, k)
    near = np.flatnonzero(scores > 0 if matching and bound <= 0 else scores >= bound)
    if len(near) < k:
        return near
    found = scores[near]
    least = np.partition(found, -k)[-k]
    above = near[found > least]
    return np.concatenate([above, near[found == least][: k - len(above)]])


def _bound(scores: Float[np.ndarray, " n"], k: int) -> float:
    """A number that at least `k` scores reach: few of the others do, and they are quickly told apart."""
    groups = max(GROUPS, 4 * k)
    if len(scores) < 2 * groups:
        return -np.inf
    whole = len(scores) - len(scores) % groups
    return np.partition(scores[:whole].reshape(-1, groups).max(axis=0), -k)[-k]
