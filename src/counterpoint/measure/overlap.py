"""What systems find together and apart: regions of a Venn diagram, and the ratio of complementarity (RoC)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from counterpoint.errors import ConfigError
from counterpoint.search.run import Run
from counterpoint.types import Qrels

__all__ = ["Overlap", "Shared", "share_of"]

Pair = tuple[str, str]
"""A query and a document."""


@dataclass(frozen=True)
class Overlap:
    """The regions of a Venn diagram of two or more sets.

    Attributes:
        names: of the sets.
        regions: by the names of the sets that something is in, and of no others, in the order of `names`: how
            much there is of it. Regions with nothing in them may be left out.
        universe: how much there is in all, in a set or in none; None where that means nothing.
    """

    names: tuple[str, ...]
    regions: Mapping[tuple[str, ...], float]
    universe: float | None = None

    @staticmethod
    def of(sets: Mapping[str, AbstractSet[Hashable]], universe: int | None = None) -> Overlap:
        """The regions of some sets: of one set first, then of two and more."""
        homes: dict[Hashable, tuple[str, ...]] = {}
        for name, members in sets.items():
            for member in members:
                homes[member] = (*homes.get(member, ()), name)
        names, counts = tuple(sets), Counter(homes.values())
        order = sorted(counts, key=lambda region: (len(region), [names.index(name) for name in region]))
        return Overlap(names, {region: counts[region] for region in order}, universe)

    def size(self, name: str) -> float:
        """|A|."""
        return sum(size for region, size in self.regions.items() if name in region)

    def only(self, name: str) -> float:
        """What is in this set and in no other."""
        return self.regions.get((name,), 0)

    def both(self, first: str, second: str) -> float:
        """|A ∩ B|."""
        return sum(size for region, size in self.regions.items() if first in region and second in region)

    def without(self, first: str, second: str) -> float:
        """|A − B|."""
        return sum(size for region, size in self.regions.items() if first in region and second not in region)

    @property
    def union(self) -> float:
        """What is in any of the sets."""
        return sum(self.regions.values())

    @property
    def several(self) -> float:
        """What is in more than one set."""
        return sum(size for region, size in self.regions.items() if len(region) > 1)

    @property
    def failure(self) -> float:
        """1 − |∪| / |U|: the share that is in no set; NaN without a universe or in an empty one."""
        return 1 - self.union / self.universe if self.universe else math.nan

    def complementarity(self, first: str, second: str) -> float:
        """RoC = |D − S| / |D| of the first, D, beside the second, S (the paper's eq. 1).

        1 where they are disjoint, 0 where S has all of D, NaN where D is empty.
        """
        size = self.size(first)
        return self.without(first, second) / size if size else math.nan


@dataclass(frozen=True)
class Shared:
    """What some runs' first `k` documents have in common.

    Attributes:
        k: the cutoff.
        found: documents, query by query (HIL, figure 3).
        relevant: relevant documents, query by query, among the judged ones.
        answered: queries with a relevant document, among those that have any (RoC, figure 1).
        recall: by run, the mean over these queries of the share of relevant documents that is found.
        union_recall: the same of all runs together, so of up to `k` documents times the number of runs.
    """

    k: int
    found: Overlap
    relevant: Overlap
    answered: Overlap
    recall: Mapping[str, float]
    union_recall: float


def share_of(runs: Mapping[str, Run], qrels: Qrels, k: int, relevant_from: int = 1) -> Shared:
    """Compare what runs find for the judged queries; a query that a run lacks finds nothing there.

    Args:
        runs: by name, two or more.
        qrels: judgements; queries without a relevant document count in `found` only.
        k: documents of each query that are looked at.
        relevant_from: lowest grade that is relevant.

    Raises:
        ConfigError: fewer than two runs, a cutoff below 1, or no query with a relevant document.
    """
    if len(runs) < 2:
        raise ConfigError(f"an overlap is of two runs or more, found {', '.join(runs) or 'none'}")
    if k < 1:
        raise ConfigError(f"k must be at least 1, found {k}")
    graded = {(q, d) for q, grades in qrels.items() for d, grade in grades.items() if grade >= relevant_from}
    totals = Counter(query for query, _ in graded)
    if not totals:
        raise ConfigError(f"no query has a document with a grade of {relevant_from} or more")
    found = {name: _found(run, qrels, k) for name, run in runs.items()}
    relevant = {name: pairs & graded for name, pairs in found.items()}
    return Shared(
        k,
        Overlap.of(found),
        Overlap.of(relevant, len(graded)),
        Overlap.of({name: {q for q, _ in pairs} for name, pairs in relevant.items()}, len(totals)),
        {name: _recall([pairs], totals) for name, pairs in relevant.items()},
        _recall(list(relevant.values()), totals),
    )


def _found(run: Run, qrels: Qrels, k: int) -> set[Pair]:
    return {(query, name) for query in qrels if query in run for name, _ in run[query][:k]}


def _recall(relevant: Sequence[set[Pair]], totals: Mapping[str, int]) -> float:
    hits = Counter(query for query, _ in set().union(*relevant))
    return sum(hits[query] / total for query, total in totals.items()) / len(totals)
