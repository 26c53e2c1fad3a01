"""Comparisons and syntheses as tables for people and as plain data for machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import count, product
from math import isfinite, isnan
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any

from counterpoint.measure.compare import CompareSettings, Comparison, Pair
from counterpoint.measure.significance import Interval
from counterpoint.measure.synthesis import Synthesis
from counterpoint.measure.tables import Cell, Table

__all__ = ["comparison_data", "comparison_tables", "letters"]

TESTS = MappingProxyType({"t": "paired t-test", "randomisation": "randomisation test"})
CORRECTIONS = MappingProxyType({"none": "not corrected", "bonferroni": "Bonferroni", "holm": "Holm"})


def comparison_tables(comparisons: Sequence[Comparison], syntheses: Sequence[Synthesis] = ()) -> list[Table]:
    """Make a table of means with significance letters, then one per comparison and one per synthesis."""
    return [_means(comparisons), *map(_pairs, comparisons), *map(_synthesis, syntheses)]


def comparison_data(comparisons: Sequence[Comparison], syntheses: Sequence[Synthesis] = ()) -> dict[str, Any]:
    """Everything as JSON values; numbers that are not finite (an undefined effect) become null."""
    return {
        "settings": _plain(comparisons[0].settings),
        "comparisons": [
            {
                "collection": comparison.collection,
                "measure": comparison.measure,
                "measured_as": comparison.shown,
                "queries": len(comparison.queries),
                "untested": comparison.untested or None,
                "means": comparison.means,
                "better_than": {name: comparison.better_than(name) for name in comparison.systems},
                "pairs": [_plain(pair) for pair in comparison.pairs],
                "per_query": _plain(comparison.per_query),
            }
            for comparison in comparisons
        ],
        "syntheses": [
            {
                "measure": synthesis.measure,
                "treatment": synthesis.treatment,
                "control": synthesis.control,
                "collections": [comparison.collection for comparison in synthesis.comparisons],
                "effects": _plain(synthesis.effects),
                "summary": _plain(synthesis.summary),
                "left_out": dict(synthesis.left_out),
            }
            for synthesis in syntheses
        ],
    }


def letters(systems: Sequence[str]) -> dict[str, str]:
    """A short name for each system: a, b, … z, aa, ab and so on."""
    names = ("".join(pair) for length in count(1) for pair in product(ascii_lowercase, repeat=length))
    return dict(zip(systems, names, strict=False))


def _means(comparisons: Sequence[Comparison]) -> Table:
    systems = list(dict.fromkeys(name for comparison in comparisons for name in comparison.systems))
    short = letters(systems)
    rows = []
    for name in systems:
        row: list[Cell | str] = [f"{short[name]} {name}"]
        for comparison in comparisons:
            means = comparison.means
            if name not in means:
                row.append("–")
                continue
            raised = ",".join(short[other] for other in comparison.better_than(name))
            raised = raised if len(systems) > 26 else raised.replace(",", "")
            row.append(Cell(f"{means[name]:.4f}", raised, means[name] == max(means.values())))
        rows.append(row)
    several = len({comparison.collection for comparison in comparisons}) > 1
    header = ["system"] + [f"{c.collection} {c.shown}" if several else c.shown for c in comparisons]
    where = "" if several else f" on {comparisons[0].collection}"
    tested = any(not comparison.untested for comparison in comparisons)
    notes = (_letters_note(comparisons[0].settings),) if tested else ()
    return Table(f"Effectiveness{where}", tuple(header), rows, notes)


def _letters_note(settings: CompareSettings) -> str:
    against = "all pairs" if settings.baseline is None else f"all others against {settings.baseline}"
    return (
        f"A letter names a significantly worse system ({_method(settings)}, p < {settings.alpha:g}; "
        f"{against} of one collection and measure are one family)."
    )


def _method(settings: CompareSettings) -> str:
    side = "two-sided" if settings.alternative == "two-sided" else f"one-sided ({settings.alternative})"
    return f"{side} {TESTS[settings.test]}, {CORRECTIONS[settings.correction]}"


def _pairs(comparison: Comparison) -> Table:
    settings = comparison.settings
    header = ["treatment − control", "difference", f"{100 * settings.confidence:g} % bootstrap interval"]
    header += ["p", "p corrected", "effect", "wins/ties/losses"]
    seeds = any(pair.seeds for pair in comparison.pairs)
    notes = [
        f"{_method(settings)}; effect: standardised mean difference (Hedges' g, {settings.effect}), "
        "in standard deviations over queries."
    ]
    if untested := comparison.untested:
        notes = [f"Not tested: {untested}."]
    if seeds:
        header.append("p over seeds")
        notes.append("p over seeds: two-sample t-test of equal variance over the means of repeated runs.")
    rows = [_pair(pair, seeds) for pair in comparison.pairs]
    undefined = {
        f"{p.treatment} − {p.control}: {p.effect.reason}"
        for p in comparison.pairs
        if p.effect.reason and not untested
    }
    notes += [f"No effect is defined for {reason}." for reason in sorted(undefined)]
    number = len(comparison.queries)
    title = f"{comparison.shown} on {comparison.collection}, {number} {'query' if number == 1 else 'queries'}"
    return Table(title, tuple(header), rows, tuple(notes))


def _pair(pair: Pair, seeds: bool) -> list[Cell | str]:
    row: list[Cell | str] = [
        f"{pair.treatment} − {pair.control}",
        _signed(pair.difference),
        _interval(pair.interval),
        _p(pair.outcome.p_value),
        Cell(_p(pair.corrected), best=pair.significant),
        "–" if isnan(pair.effect.estimate) else _signed(pair.effect.estimate, 3),
        "/".join(map(str, pair.counts)),
    ]
    if seeds:
        row.append("–" if pair.seeds is None else _p(pair.seeds.p_value))
    return row


def _synthesis(synthesis: Synthesis) -> Table:
    settings, summary = synthesis.comparisons[0].settings, synthesis.summary
    rows: list[Sequence[Cell | str]] = [
        [
            comparison.collection,
            str(len(comparison.queries)),
            f"{comparison.means[synthesis.control]:.4f}",
            f"{comparison.means[synthesis.treatment]:.4f}",
            _signed(effect.estimate, 3),
            _interval(effect.interval(settings.confidence), 3),
            f"{weight:.1%}",
        ]
        for comparison, effect, weight in zip(
            synthesis.comparisons, synthesis.effects, summary.weights, strict=True
        )
    ]
    total = str(sum(len(comparison.queries) for comparison in synthesis.comparisons))
    estimate = Cell(_signed(summary.estimate, 3), best=True)
    rows.append(["summary effect", total, "", "", estimate, _interval(summary.interval, 3), "100.0%"])
    notes = [
        f"Random effects by DerSimonian and Laird over {settings.effect} standardised mean differences "
        f"(Hedges' g); p of the summary {_p(summary.p_value)}.",
        f"Heterogeneity: Q = {summary.q:.3f}"
        + ("" if isnan(summary.q_p_value) else f" (p {_p(summary.q_p_value)})")
        + f", τ² = {summary.tau_squared:.4f}, I² = {summary.i_squared:.0%}.",
        *(f"Left out: {name} ({reason})." for name, reason in synthesis.left_out.items()),
    ]
    title = f"{synthesis.treatment} − {synthesis.control} over collections, {synthesis.measure}"
    interval = f"{100 * settings.confidence:g} % interval"
    header = ("collection", "queries", synthesis.control, synthesis.treatment, "effect", interval, "weight")
    return Table(title, header, rows, tuple(notes))


def _plain(value: Any) -> Any:
    """Convert dataclasses and named tuples to dictionaries, and numbers that JSON lacks to None."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if names := getattr(value, "_fields", None):
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _signed(value: float, digits: int = 4) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _interval(interval: Interval, digits: int = 4) -> str:
    if isnan(interval.low):
        return "–"
    return f"[{_signed(interval.low, digits)}, {_signed(interval.high, digits)}]"


def _p(value: float) -> str:
    if isnan(value):
        return "–"
    return f"{value:.1e}" if 0 < value < 0.0001 else f"{value:.4f}"
