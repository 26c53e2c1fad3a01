"""The slowest of many shards, against the exact distribution."""

import numpy as np
import pytest

from counterpoint.errors import ConfigError
from counterpoint.scale import Quantiles, fan_out_level, slowest

MEASURED = Quantiles((0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0), (2.0, 5.0, 8.0, 10.0, 20.0, 60.0, 200.0))
DRAWS = 40_000


def hedged(value):
    """F of one hedged request: late only if the first is, and the second after the wait."""
    wait = float(MEASURED.at(0.95))
    late = (1 - MEASURED.below(value)) * (1 - np.where(value > wait, MEASURED.below(value - wait), 0.0))
    return 1 - late


@pytest.mark.parametrize("hedge", [None, 0.95])
def test_the_slowest_has_the_exact_distribution(hedge):
    """For independent draws, F of the slowest of n is Fⁿ: compared by Kolmogorov and Smirnov's distance."""
    shards = (1, 10, 100)
    found = slowest(MEASURED, shards, DRAWS, hedge=hedge, seed=3)
    one = MEASURED.below if hedge is None else hedged
    for number, drawn in zip(shards, np.sort(found, axis=1), strict=True):
        exact = one(drawn) ** number
        seen = np.arange(1, DRAWS + 1) / DRAWS
        assert np.abs(exact - seen).max() < 1.95 / DRAWS**0.5  # fails by chance once in a thousand seeds


def test_the_p99_of_a_fan_out_is_a_rarer_quantile_of_one_shard():
    found = np.quantile(slowest(MEASURED, [10], DRAWS, seed=1)[0], 0.99)
    assert found == pytest.approx(float(MEASURED.at(fan_out_level(0.99, 10))), rel=0.05)
    assert fan_out_level(0.99, 1) == 0.99 and fan_out_level(0.25, 2) == 0.5


def test_more_shards_are_slower_and_a_second_request_is_not():
    plain, again = (slowest(MEASURED, [1, 10, 100, 1000], 2_000, hedge=hedge) for hedge in (None, 0.95))
    assert (np.diff(plain, axis=0) >= 0).all()
    assert (np.quantile(again, 0.99, axis=1) < np.quantile(plain, 0.99, axis=1)).all()
    assert slowest(MEASURED, [], 5).shape == (0, 5)


def test_what_is_no_distribution_is_refused():
    for levels, values in (((0.0, 1.0), (1.0, 1.0)), ((0.1, 1.0), (1.0, 2.0)), ((0.0, 1.0), (1.0, 2.0, 3.0))):
        with pytest.raises(ConfigError, match="levels must rise from 0 to 1"):
            Quantiles(levels, values)
    with pytest.raises(ConfigError, match="at least 1 shard, found 0"):
        slowest(MEASURED, [0], 5)
