"""Select the best of many scores without sorting them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    from counterpoint.index.kernel_names import Kernels

__all__ = ["EVERY", "GROUP", "Among", "Peaks", "best_among", "best_of"]


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

GROUPS = 1024  # groups of scores, at least; only the highest of each is compared at first
OF_BEST = 4  # groups for each of the best that are looked for, so that the maxima bound them closely
GROUP = 64  # scores of a group from which on it is worth looking at some only; kernels have such groups


@final
class Peaks:
    """Many scores, with the highest of each group of them, so that few are looked at twice.

    Args:
        scores: one for each position.
        k: how many of the best are looked for.
        kernels: find the same sooner; None for numpy.
    """

    def __init__(self, scores: Float[np.ndarray, " n"], k: int, kernels: Kernels | None = None):
        groups = max(GROUPS, OF_BEST * k)
        self.scores, size = scores, len(scores) // groups
        self._size = size if size >= GROUP else 0  # of a group of neighbours; 0 for other groups
        # A kernel's groups are small, so fewer of them than `GROUPS` are enough.
        self._kernels = kernels if len(scores) >= GROUP * OF_BEST * k else None
        if self._kernels is not None:
            self._peaks = self._highest = self._kernels.highest(scores)
            if size >= 2 * GROUP:
                self._highest = _highest(self._peaks, size // GROUP)
        elif self._size:
            self._highest = _highest(scores, size)
        elif size > 1:
            whole = len(scores) - len(scores) % groups
            self._highest = scores[:whole].reshape(-1, groups).max(axis=0)  # faster than of neighbours
        else:  # so few that a bound would cost what it saves
            self._highest = scores[:0]

    def reaching(self, least: float) -> Int[np.ndarray, " c"]:
        """The positions of scores of at least `least`, ascending."""
        if self._kernels is not None:
            return self._kernels.reaching(self.scores, self._peaks, least, False)
        return self._where(lambda some: some >= least)

    def positive(self) -> Int[np.ndarray, " c"]:
        """The positions of scores above 0, ascending."""
        if self._kernels is not None:
            return self._kernels.reaching(self.scores, self._peaks, 0.0, True)
        return self._where(lambda some: some > 0)

    def bound(self, k: int) -> float:
        """A number that at least `k` scores reach, and few others; −∞ for few scores."""
        return np.partition(self._highest, -k)[-k] if len(self._highest) > k else -np.inf

    def _where(self, test: Callable[[np.ndarray], np.ndarray]) -> Int[np.ndarray, " c"]:
        """The positions that pass a test, which the higher of two scores passes if the lower one does."""
        if not self._size:
            return np.flatnonzero(test(self.scores))
        whole = len(self.scores) // self._size
        chosen, end = np.flatnonzero(test(self._highest[:whole])), whole * self._size
        if 2 * len(chosen) > whole:  # most
            return np.flatnonzero(test(self.scores))
        found = np.flatnonzero(test(self.scores[:end].reshape(whole, self._size)[chosen]))
        rest = np.flatnonzero(test(self.scores[end:])) + end
        return np.concatenate([chosen[found // self._size] * self._size + found % self._size, rest])


def _highest(scores: Float[np.ndarray, " n"], size: int) -> Float[np.ndarray, " g"]:
    """The highest of each group of neighbours."""
    return np.maximum.reduceat(scores, np.arange(0, len(scores), size))


def best_of(
    scores: Float[np.ndarray, " n"] | Peaks,
    k: int,
    *,
    matching: bool,
    order: Int[np.ndarray, " n"] | None = None,
    kernels: Kernels | None = None,
) -> Int[np.ndarray, " c"]:
    """Positions of the best `k`, the first on ties; a smaller `k` gives a subset of a larger one.

    With `order`, those with the lowest numbers there are first on ties.

    With `matching`, documents that score 0 or less are left out: none of the query's words is in them.
    """
    peaks = scores if isinstance(scores, Peaks) else Peaks(scores, k, kernels)
    k = min(k, len(peaks.scores))
    if not k:
        return np.zeros(0, np.int64)
    bound = peaks.bound(k)
    near = peaks.positive() if matching and bound <= 0 else peaks.reaching(bound)
    if len(near) < k:
        return near
    found = peaks.scores[near]
    least = np.partition(found, -k)[-k]
    above = near[found > least]
    ties, left = near[found == least], k - len(above)
    if order is not None and left < len(ties):
        ties = ties[np.argpartition(order[ties], left - 1)]
    return np.concatenate([above, ties[:left]])


def best_among(
    scores: Float[np.ndarray, " n"] | Peaks,
    k: int,
    among: Among,
    *,
    matching: bool,
    kernels: Kernels | None = None,
) -> Int[np.ndarray, " c"]:
    """`best_of` the allowed documents."""
    if among.allowed is None:
        return best_of(scores, k, matching=matching, order=among.order, kernels=kernels)
    positions = np.flatnonzero(among.allowed)
    some = (scores.scores if isinstance(scores, Peaks) else scores)[positions]
    return positions[best_of(some, k, matching=matching, order=among.at(positions), kernels=kernels)]
