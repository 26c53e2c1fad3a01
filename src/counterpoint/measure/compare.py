"""Compare systems on one collection by one measure, with significance tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError, DataError
from counterpoint.frames import frame, html_table
from counterpoint.measure.effects import Effect, Pairing, standardised_mean_difference
from counterpoint.measure.significance import (
    Alternative,
    Interval,
    Outcome,
    WinTieLoss,
    bonferroni,
    bootstrap_interval,
    holm,
    paired_t_test,
    randomisation_test,
    two_sample_t_test,
    win_tie_loss,
)

if TYPE_CHECKING:
    import pandas

__all__ = ["CompareSettings", "Comparison", "Pair", "compare", "mean_of"]

Values = Mapping[str, float]
Test = Literal["t", "randomisation"]
Correction = Literal["none", "bonferroni", "holm"]
LEAST = 3
"""Minimum number of queries for a test; with fewer, there are only means, differences and counts."""


@dataclass(frozen=True)
class CompareSettings:
    """How to compare systems.

    Attributes:
        baseline: compare every other system with this one; if None, compare all pairs, the later system with
            the earlier.
        test: Student's paired t-test, or Fisher's randomisation test.
        alternative: hypothesis about the first system of a pair.
        correction: for the pairs of one collection and measure, which are one family of tests.
        alpha: significance level.
        confidence: confidence level of all intervals.
        effect: how to compute the standardised mean difference.
        resamples: number of resamples of the bootstrap and the randomisation test.
        seed: random seed of both.

    Raises:
        ConfigError: lists every invalid setting.
    """

    baseline: str | None = None
    test: Test = "t"
    alternative: Alternative = "two-sided"
    correction: Correction = "holm"
    alpha: float = 0.05
    confidence: float = 0.95
    effect: Pairing = "paired"
    resamples: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        choices = {"test": Test, "alternative": Alternative, "correction": Correction, "effect": Pairing}
        faults = [
            f"{name} must be one of {', '.join(get_args(known))}, found {getattr(self, name)!r}"
            for name, known in choices.items()
            if getattr(self, name) not in get_args(known)
        ]
        faults += [
            f"{name} must be between 0 and 1, found {getattr(self, name)}"
            for name in ("alpha", "confidence")
            if not 0 < getattr(self, name) < 1
        ]
        if self.resamples < 1:
            faults.append(f"resamples must be positive, found {self.resamples}")
        if faults:
            raise ConfigError(*faults)


@dataclass(frozen=True)
class Pair:
    """Two systems compared over the same queries.

    With fewer than three queries, the interval, the outcome, its correction and the effect are NaN.

    Attributes:
        treatment: the first system.
        control: the system that it is compared with.
        difference: mean over queries of treatment minus control.
        interval: BCa bootstrap interval of that mean.
        outcome: of the chosen test.
        corrected: the p-value corrected for the number of pairs.
        significant: whether it is below alpha.
        effect: the standardised mean difference.
        counts: number of queries on which the treatment wins, ties, loses.
        seeds: two-sample t-test over the systems' repeated runs, if both have at least two.
    """

    treatment: str
    control: str
    difference: float
    interval: Interval
    outcome: Outcome
    corrected: float
    significant: bool
    effect: Effect
    counts: WinTieLoss
    seeds: Outcome | None = None


@dataclass(frozen=True)
class Comparison:
    """The comparison of systems on one collection by one measure.

    Attributes:
        collection: its name.
        measure: its name; comparisons are grouped by it.
        per_query: system to query to value; the mean over its runs if a system has several.
        pairs: every requested pair.
        settings: how they were compared.
        measured_as: the measure with settings of this collection, such as its binarisation point.
    """

    collection: str
    measure: str
    per_query: Mapping[str, Values]
    pairs: tuple[Pair, ...]
    settings: CompareSettings
    measured_as: str = ""

    @property
    def shown(self) -> str:
        """Name of the measure in tables."""
        return self.measured_as or self.measure

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, in the given order."""
        return tuple(self.per_query)

    @property
    def queries(self) -> tuple[str, ...]:
        """The compared queries."""
        return tuple(next(iter(self.per_query.values())))

    @property
    def untested(self) -> str:
        """Why nothing was tested; empty if tests were made."""
        return _untested(len(self.queries))

    @property
    def means(self) -> dict[str, float]:
        """Each system's mean over queries."""
        return {name: float(np.mean(list(values.values()))) for name, values in self.per_query.items()}

    def better_than(self, system: str) -> list[str]:
        """The systems than which `system` is significantly better."""
        found = [
            pair.control if pair.difference > 0 else pair.treatment
            for pair in self.pairs
            if pair.significant and system == (pair.treatment if pair.difference > 0 else pair.control)
        ]
        return [name for name in self.systems if name in found]

    def to_pandas(self) -> pandas.DataFrame:
        """One row per pair: means, difference, its interval, p, effect, and wins, ties and losses.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        rows = self._rows()
        return frame({name: [row[name] for row in rows] for name in rows[0]})

    def _repr_html_(self) -> str:
        rows = self._rows()
        notes = [f"Not tested: {self.untested}."] if self.untested else []
        caption = f"{self.shown} on {self.collection}, {len(self.queries):,} queries"
        return html_table(caption, list(rows[0]), [list(row.values()) for row in rows], notes)

    def _rows(self) -> list[dict[str, Any]]:
        means = self.means
        return [
            {
                "treatment": pair.treatment,
                "control": pair.control,
                "mean of treatment": means[pair.treatment],
                "mean of control": means[pair.control],
                "difference": pair.difference,
                **pair.interval._asdict(),
                "p": pair.outcome.p_value,
                "p corrected": pair.corrected,
                "significant": pair.significant,
                "effect": pair.effect.estimate,
                **pair.counts._asdict(),
            }
            for pair in self.pairs
        ]


def compare(
    collection: str,
    measure: str,
    systems: Mapping[str, Sequence[Values]],
    settings: CompareSettings | None = None,
) -> Comparison:
    """Compare systems on one collection by one measure.

    Args:
        collection: its name, for the result.
        measure: its name, for the result.
        systems: system name to its runs; each run maps query to value, with one run, or one per seed. Values
            are averaged over a system's runs before queries are paired.
        settings: by default all pairs, with a two-sided t-test and Holm's correction.

    Raises:
        ConfigError: fewer than two systems, or no such baseline.
        DataError: the systems' queries differ, or there are none.
    """
    settings = settings or CompareSettings()
    pairs = _pairs(list(systems), settings.baseline)
    _same_queries(systems)
    per_query = {name: mean_of(runs) for name, runs in systems.items()}
    tested = [_test(treatment, control, per_query, systems, settings) for treatment, control in pairs]
    found = Comparison(collection, measure, per_query, tuple(tested), settings)
    if found.untested:
        return found
    correct = {"none": list, "bonferroni": bonferroni, "holm": holm}[settings.correction]
    corrected = correct([pair.outcome.p_value for pair in tested])
    pairs_corrected = (
        replace(pair, corrected=p, significant=p < settings.alpha)
        for pair, p in zip(tested, corrected, strict=True)
    )
    return replace(found, pairs=tuple(pairs_corrected))


def mean_of(runs: Sequence[Values]) -> dict[str, float]:
    """Mean over a system's runs, query by query."""
    return {query: float(np.mean([run[query] for run in runs])) for query in runs[0]}


def _pairs(names: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if len(names) < 2:
        raise ConfigError(f"a comparison needs at least two systems, found {', '.join(names) or 'none'}")
    if baseline is None:
        return [(later, earlier) for earlier, later in combinations(names, 2)]
    if baseline not in names:
        raise ConfigError(f"no system is called {baseline!r}; there are {', '.join(names)}")
    return [(name, baseline) for name in names if name != baseline]


def _same_queries(systems: Mapping[str, Sequence[Values]]) -> None:
    first, expected = next((name, set(runs[0])) for name, runs in systems.items())
    if not expected:
        raise DataError("a comparison needs queries, but there are none")
    for name, runs in systems.items():
        for run in runs:
            if odd := expected.symmetric_difference(run):
                raise DataError(
                    f"{first} and {name} must have values for the same queries; {min(odd)!r} is in one only"
                )


def _untested(queries: int) -> str:
    if queries >= LEAST:
        return ""
    found = "there is 1" if queries == 1 else f"there are {queries}"
    return f"a test, an interval and an effect need {LEAST} queries or more, and {found}"


def _test(
    treatment: str,
    control: str,
    per_query: Mapping[str, Values],
    systems: Mapping[str, Sequence[Values]],
    settings: CompareSettings,
) -> Pair:
    queries = list(per_query[treatment])
    first, second = (np.array([per_query[name][query] for query in queries]) for name in (treatment, control))
    differences = first - second
    runs = [[float(np.mean(list(run.values()))) for run in systems[name]] for name in (treatment, control)]
    repeated = all(len(means) > 1 for means in runs)
    outcome, interval, effect = _inferred(first, second, settings)
    return Pair(
        treatment=treatment,
        control=control,
        difference=float(differences.mean()),
        interval=interval,
        outcome=outcome,
        corrected=outcome.p_value,
        significant=False,
        effect=effect,
        counts=win_tie_loss(differences),
        seeds=two_sample_t_test(runs[0], runs[1], settings.alternative) if repeated else None,
    )


def _inferred(
    first: Float[np.ndarray, " n"], second: Float[np.ndarray, " n"], settings: CompareSettings
) -> tuple[Outcome, Interval, Effect]:
    """Test, interval and effect; NaN if there are too few queries."""
    if reason := _untested(len(first)):
        return Outcome(nan, nan), Interval(nan, nan), Effect(nan, nan, reason)
    differences = first - second
    drawn = {"resamples": settings.resamples, "seed": settings.seed}
    if settings.test == "t":
        outcome = paired_t_test(differences, settings.alternative)
    else:
        outcome = randomisation_test(differences, settings.alternative, **drawn)
    interval = bootstrap_interval(differences, settings.confidence, **drawn)
    return outcome, interval, standardised_mean_difference(first, second, settings.effect)
