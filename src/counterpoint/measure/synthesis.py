"""Meta-analysis of each pair of systems over several collections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

from counterpoint.measure.compare import Comparison
from counterpoint.measure.effects import Effect, Summary, random_effects

__all__ = ["Synthesis", "synthesise"]


@dataclass(frozen=True)
class Synthesis:
    """One pair of systems by one measure over several collections.

    Attributes:
        measure: its name.
        treatment: the first system.
        control: the system that it is compared with.
        comparisons: one per collection with a defined effect.
        effects: one per comparison, in the same order.
        summary: over these.
        left_out: collection to the reason why its effect is undefined.
    """

    measure: str
    treatment: str
    control: str
    comparisons: tuple[Comparison, ...]
    effects: tuple[Effect, ...]
    summary: Summary
    left_out: Mapping[str, str]


def synthesise(comparisons: Sequence[Comparison]) -> list[Synthesis]:
    """Compute the random-effects summary of each pair and measure that occurs in at least two comparisons.

    A collection with an undefined effect is left out and named. A pair without any collection left is not in
    the result.
    """
    found: dict[tuple[str, str, str], dict[str, tuple[Comparison, Effect]]] = {}
    for comparison in comparisons:
        for pair in comparison.pairs:
            key = (comparison.measure, pair.treatment, pair.control)
            found.setdefault(key, {})[comparison.collection] = (comparison, pair.effect)
    made = []
    for key, rows in found.items():
        defined = [row for row in rows.values() if not isnan(row[1].estimate)]
        if len(rows) < 2 or not defined:
            continue
        effects = tuple(effect for _, effect in defined)
        summary = random_effects(effects, defined[0][0].settings.confidence)
        left_out = {name: effect.reason for name, (_, effect) in rows.items() if isnan(effect.estimate)}
        made.append(Synthesis(*key, tuple(c for c, _ in defined), effects, summary, left_out))
    return made
