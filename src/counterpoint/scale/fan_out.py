"""The slowest of many shards: a search waits for all of them, so a rare delay of one becomes common.

Latencies are drawn from measured ones, for each shard independently. A hedged request is sent a second time,
to another replica, if there is no answer after some time; the earlier answer counts (Dean and Barroso, 2013,
The tail at scale).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError

__all__ = ["Quantiles", "fan_out_level", "slowest"]


@final
@dataclass(frozen=True)
class Quantiles:
    """A distribution by some of its quantiles, with straight lines between them.

    Args:
        levels: rising from 0 to 1.
        values: the quantile of each level, rising.

    Raises:
        ConfigError: they do not rise, or levels do not go from 0 to 1.
    """

    levels: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        ends = self.levels[:1] == (0.0,) and self.levels[-1:] == (1.0,)
        rising = all(np.all(np.diff(each) > 0) for each in (self.levels, self.values))
        if len(self.levels) != len(self.values) or not ends or not rising:
            raise ConfigError("quantiles: levels must rise from 0 to 1, and values must rise")

    def at(self, level: float | Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """The quantile at a level."""
        return np.asarray(np.interp(level, self.levels, self.values))

    def below(self, value: float | Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
        """The share of latencies up to a value (F)."""
        return np.asarray(np.interp(value, self.values, self.levels, left=0.0, right=1.0))


def fan_out_level(level: float, shards: int) -> float:
    """The level of one shard's latency that is the level of the slowest shard's: Fⁿ is `level` there.

    >>> round(fan_out_level(0.99, 100), 5)
    0.9999
    """
    return level ** (1 / shards)


def slowest(
    latencies: Quantiles, shards: Sequence[int], draws: int, *, hedge: float | None = None, seed: int = 0
) -> Float[np.ndarray, "shards draws"]:
    """Draw the latency of searches that wait for the slowest of so many shards.

    Args:
        latencies: of one shard.
        shards: numbers of shards; a row of the result for each.
        draws: searches.
        hedge: level of the latency after which a request is sent again; None for never.
        seed: of the draws.

    Raises:
        ConfigError: a number of shards is below 1.
    """
    if min(shards, default=1) < 1:
        raise ConfigError(f"a search asks at least 1 shard, found {min(shards)}")
    rng = np.random.default_rng(seed)
    wait = None if hedge is None else float(latencies.at(hedge))
    worst, found = np.zeros(draws), {}
    for number in range(1, max(shards, default=0) + 1):
        drawn = latencies.at(rng.random(draws))
        if wait is not None:
            late = drawn > wait
            again = wait + latencies.at(rng.random(int(late.sum())))
            drawn[late] = np.minimum(drawn[late], again)
        np.maximum(worst, drawn, out=worst)
        if number in shards:
            found[number] = worst.copy()
    return np.stack([found[number] for number in shards]) if found else np.zeros((0, draws))
