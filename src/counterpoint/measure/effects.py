"""Meta-analysis: one standardised effect per collection, and their random-effects summary.

Sources: Hedges (1981) and Borenstein et al. (2009, chapters 4, 12, 16) for the formulas, DerSimonian and
Laird (1986) for the variance between collections, Soboroff (2018) and ColBERTer (section 6.3) for the use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from typing import Literal

import numpy as np

from counterpoint.errors import DataError
from counterpoint.measure.significance import Interval

__all__ = ["Effect", "Pairing", "Summary", "random_effects", "standardised_mean_difference"]

Pairing = Literal["paired", "unpaired"]


@dataclass(frozen=True)
class Effect:
    """A standardised mean difference.

    Attributes:
        estimate: Hedges' g, in standard deviations of the measure over queries; positive if the treatment is
            better, NaN if undefined.
        variance: its sampling variance.
        reason: why it is undefined; empty if it is defined.
    """

    estimate: float
    variance: float
    reason: str = ""

    def interval(self, confidence: float = 0.95) -> Interval:
        """Its normal confidence interval."""
        return _normal_interval(self.estimate, sqrt(self.variance), confidence)


@dataclass(frozen=True)
class Summary:
    """The random-effects summary of several effects.

    Attributes:
        estimate: the weighted mean effect.
        standard_error: of `estimate`.
        interval: normal, at the requested confidence.
        p_value: two-sided, of the hypothesis that there is no effect.
        weights: of the effects, in their order; they sum to 1.
        tau_squared: the variance between collections, never below 0.
        q: Cochran's Q, the weighted squared deviations from the fixed-effect mean.
        q_p_value: of Q under homogeneity (chi-squared); NaN for a single effect.
        i_squared: share of the variation that lies between collections.
    """

    estimate: float
    standard_error: float
    interval: Interval
    p_value: float
    weights: tuple[float, ...]
    tau_squared: float
    q: float
    q_p_value: float
    i_squared: float


def standardised_mean_difference(
    treatment: Sequence[float] | np.ndarray,
    control: Sequence[float] | np.ndarray,
    pairing: Pairing = "paired",
) -> Effect:
    """Hedges' g of two systems over the same queries, in the same order.

    `paired` uses the fact that both answered the same queries, which narrows the interval. `unpaired` treats
    them as two samples, as ColBERTer's printed intervals do; use it to reproduce these.

    Raises:
        DataError: the numbers of values differ, or are below three.
    """
    first, second = np.asarray(treatment, np.float64), np.asarray(control, np.float64)
    if first.shape != second.shape or first.ndim != 1 or len(first) < 3:
        raise DataError(
            "an effect needs the same queries on both sides, at least three; "
            f"found {len(first)} and {len(second)}"
        )
    if np.ptp(first) == np.ptp(second) == 0:
        return Effect(nan, nan, "both systems have the same value on every query")
    return (_paired if pairing == "paired" else _unpaired)(first, second)


def random_effects(effects: Sequence[Effect], confidence: float = 0.95) -> Summary:
    """Summarise effects with DerSimonian and Laird's estimate of the variance between collections.

    Raises:
        DataError: no effects, or an undefined one.
    """
    from scipy import stats

    if not effects:
        raise DataError("there are no effects to summarise")
    for effect in effects:
        if isnan(effect.estimate):
            raise DataError(f"an effect is undefined: {effect.reason}")
    estimates = np.array([effect.estimate for effect in effects])
    within = np.array([effect.variance for effect in effects])
    fixed = 1 / within
    q = float((fixed * (estimates - np.average(estimates, weights=fixed)) ** 2).sum())
    degrees = len(effects) - 1
    scale = float(fixed.sum() - (fixed**2).sum() / fixed.sum())
    tau_squared = max(0.0, (q - degrees) / scale) if degrees else 0.0
    weights = 1 / (within + tau_squared)
    estimate = float(np.average(estimates, weights=weights))
    error = float(1 / np.sqrt(weights.sum()))
    return Summary(
        estimate=estimate,
        standard_error=error,
        interval=_normal_interval(estimate, error, confidence),
        p_value=float(2 * stats.norm.sf(abs(estimate) / error)),
        weights=tuple((weights / weights.sum()).tolist()),
        tau_squared=tau_squared,
        q=q,
        q_p_value=float(stats.chi2.sf(q, degrees)) if degrees else nan,
        i_squared=max(0.0, (q - degrees) / q) if q > 0 else 0.0,
    )


def _unpaired(first: np.ndarray, second: np.ndarray) -> Effect:
    """Difference over the pooled standard deviation, with Hedges' correction for small samples."""
    n = len(first)
    pooled = sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2)
    d = float(first.mean() - second.mean()) / pooled
    correction = 1 - 3 / (4 * (2 * n - 2) - 1)
    return Effect(correction * d, correction**2 * (2 / n + d**2 / (4 * n)))


def _paired(first: np.ndarray, second: np.ndarray) -> Effect:
    """Difference over the standard deviation within a system, recovered from the correlation of the two."""
    n = len(first)
    differences = first - second
    spread = float(differences.std())
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return Effect(nan, nan, "one system has the same value on every query, so there is no correlation")
    free = 2 * (1 - float(np.corrcoef(first, second)[0, 1]))
    if spread < 1e-12 or free < 1e-12:
        return Effect(nan, nan, "the systems differ by one constant, or not at all")
    d = float(differences.mean()) / (spread / sqrt(free))
    correction = 1 - 3 / (4 * (n - 1) - 1)
    return Effect(correction * d, correction**2 * (1 / n + d**2 / (2 * n)) * free)


def _normal_interval(estimate: float, error: float, confidence: float) -> Interval:
    from scipy import stats

    reach = float(stats.norm.ppf((1 + confidence) / 2)) * error
    return Interval(estimate - reach, estimate + reach)
