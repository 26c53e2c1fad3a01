"""Tests of paired differences, intervals, and corrections for multiple tests, as pure functions.

A difference is a query's value of one system minus that of another. No function depends on their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError, DataError

__all__ = [
    "Alternative",
    "Interval",
    "Outcome",
    "WinTieLoss",
    "bonferroni",
    "bootstrap_interval",
    "holm",
    "paired_t_test",
    "randomisation_test",
    "two_sample_t_test",
    "win_tie_loss",
]

Alternative = Literal["two-sided", "greater", "less"]
"""Hypothesis to test: the systems differ, the first is better, or the first is worse."""

BLOCK = 1 << 22  # number of signs drawn at a time


class Outcome(NamedTuple):
    """A test's statistic, and its p-value."""

    statistic: float
    p_value: float


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


class WinTieLoss(NamedTuple):
    """Number of queries on which a system is better, equal and worse."""

    wins: int
    ties: int
    losses: int


def paired_t_test(differences: Float[np.ndarray, " n"], alternative: Alternative = "two-sided") -> Outcome:
    """Student's t-test of paired values.

    If all differences are 0, the statistic is 0 and the p-value 1. If all equal one other number, the
    statistic is infinite.

    Raises:
        DataError: fewer than two differences, which do not show any spread.
    """
    from scipy import stats

    differences = _checked(differences)
    if not differences.any():
        return Outcome(0.0, 1.0)
    if _constant(differences):  # scipy would warn of lost precision
        statistic = float(np.copysign(np.inf, differences[0]))
        shown = {"two-sided": True, "greater": statistic > 0, "less": statistic < 0}[alternative]
        return Outcome(statistic, 0.0 if shown else 1.0)
    return Outcome(*np.array(stats.ttest_1samp(differences, 0.0, alternative=alternative)).tolist())


def two_sample_t_test(
    treatment: Sequence[float], control: Sequence[float], alternative: Alternative = "two-sided"
) -> Outcome:
    """Student's t-test of two samples of equal variance, such as the means of runs of several seeds.

    Source: Isotropic DR, section 5.1.2 (one-tailed, over three seeds, under homoscedasticity).

    Raises:
        DataError: fewer than two values on a side.
    """
    from scipy import stats

    first, second = _checked(treatment), _checked(control)
    if _constant(first) and _constant(second):
        return paired_t_test(np.full(2, first[0] - second[0]), alternative)
    found = stats.ttest_ind(first, second, equal_var=True, alternative=alternative)
    return Outcome(*np.array(found).tolist())


def randomisation_test(
    differences: Float[np.ndarray, " n"],
    alternative: Alternative = "two-sided",
    *,
    resamples: int = 100_000,
    seed: int = 0,
) -> Outcome:
    """Fisher's randomisation test of paired values: how often random signs give a mean as extreme.

    If there are at most `resamples` sign patterns, all are tried and the p-value is exact. Otherwise
    `resamples` patterns are drawn, and the observed one is added, so that p is never 0.

    Raises:
        DataError: fewer than two differences.
        ConfigError: `resamples` is not positive.
    """
    if resamples < 1:
        raise ConfigError(f"resamples must be positive, found {resamples}")
    differences = _checked(differences)
    observed = float(differences.sum())
    exact = 2.0 ** len(differences) <= resamples
    patterns = _every_sign(len(differences)) if exact else _random_signs(len(differences), resamples, seed)
    slack = 1e-12 * np.abs(differences).sum()  # the order of a sum changes its last digits
    turned = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    extreme = total = 0
    for flipped in patterns:
        sums = observed - 2 * (flipped @ differences)
        extreme += int((turned(sums) >= turned(observed) - slack).sum())
        total += len(sums)
    p_value = extreme / total if exact else (extreme + 1) / (total + 1)
    return Outcome(observed / len(differences), p_value)


def bootstrap_interval(
    differences: Float[np.ndarray, " n"], confidence: float = 0.95, *, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """BCa bootstrap interval of the mean difference (Efron 1987); a point if all differences are equal.

    Raises:
        DataError: fewer than two differences.
        ConfigError: the confidence is not between 0 and 1.
    """
    from scipy import stats

    if not 0 < confidence < 1:
        raise ConfigError(f"confidence must be between 0 and 1, found {confidence}")
    differences = _checked(differences)
    if _constant(differences):
        return Interval(float(differences[0]), float(differences[0]))
    found = stats.bootstrap(
        (differences,),
        np.mean,
        confidence_level=confidence,
        n_resamples=resamples,
        batch=max(1, BLOCK // len(differences)),
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(found.low), float(found.high))


def bonferroni(p_values: Sequence[float]) -> list[float]:
    """P-values times their number, at most 1; compare each with alpha."""
    return [min(1.0, len(p_values) * p) for p in p_values]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down p-values (1979): as safe as Bonferroni's, and never larger."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = highest
    return adjusted


def win_tie_loss(differences: Float[np.ndarray, " n"], tolerance: float = 1e-9) -> WinTieLoss:
    """Count positive, zero and negative differences; values below `tolerance` count as zero."""
    differences = np.asarray(differences)
    wins, losses = int((differences > tolerance).sum()), int((differences < -tolerance).sum())
    return WinTieLoss(wins, len(differences) - wins - losses, losses)


def _checked(values: Sequence[float] | np.ndarray) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        raise DataError(f"a test needs at least two values, found {len(array)}")
    return array


def _constant(values: np.ndarray) -> bool:
    """Whether all values are equal except for rounding."""
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max())


def _every_sign(n: int) -> Iterator[np.ndarray]:
    """Yield all patterns of `n` signs as rows of 0 and 1, in blocks."""
    rows = max(1, BLOCK // n)
    for start in range(0, 2**n, rows):
        numbers = np.arange(start, min(start + rows, 2**n))
        yield (numbers[:, None] >> np.arange(n) & 1).astype(np.float64)


def _random_signs(n: int, patterns: int, seed: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    width = -(-n // 8)
    rows = max(1, BLOCK // n)
    for start in range(0, patterns, rows):
        drawn = rng.integers(0, 256, size=(min(rows, patterns - start), width), dtype=np.uint8)
        yield np.unpackbits(drawn, axis=1, count=n).astype(np.float64)
