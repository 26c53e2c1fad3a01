"""Systems over slices of the queries: means, and how often a system beats a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from counterpoint.errors import ConfigError
from counterpoint.measure.significance import WinTieLoss, win_tie_loss
from counterpoint.measure.slices import Slicing

__all__ = ["ALL", "means_over", "wins_over", "with_all"]

ALL = "all"

Values = Mapping[str, float]
Slices = Mapping[str, Sequence[str]]


def with_all(queries: Iterable[str], slicing: Slicing | None) -> dict[str, tuple[str, ...]]:
    """The slice `all`, then those of a slicing."""
    return {ALL: tuple(queries), **({} if slicing is None else slicing.slices)}


def means_over(systems: Mapping[str, Values], slices: Slices) -> dict[str, dict[str, float]]:
    """Each system's mean over the queries of each slice: slice to system to mean."""
    return {
        label: {name: float(np.mean([values[q] for q in queries])) for name, values in systems.items()}
        for label, queries in slices.items()
    }


def wins_over(
    systems: Mapping[str, Values], baseline: str, slices: Slices
) -> dict[str, dict[str, WinTieLoss]]:
    """By system and slice, count the queries on which it is better than a baseline, equal or worse.

    With RR@10 and BM25's hard half, this is RoC's figure 4: which of two systems ranks the first relevant
    document higher.

    Raises:
        ConfigError: no system has the baseline's name.
    """
    if baseline not in systems:
        raise ConfigError(f"no system is called {baseline!r}; there are {', '.join(systems)}")
    control = systems[baseline]
    return {
        name: {
            label: win_tie_loss(np.array([values[q] - control[q] for q in queries]))
            for label, queries in slices.items()
        }
        for name, values in systems.items()
        if name != baseline
    }
