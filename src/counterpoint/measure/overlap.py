"""Overlap of systems: regions of a Venn diagram, and the ratio of complementarity (RoC)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

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
        regions: size of each region, by the names of exactly those sets that its members are in, in the order
            of `names`. Empty regions may be left out.
        universe: size of everything, in a set or in none; None if that has no meaning.
    """

    names: tuple[str, ...]
    regions: Mapping[tuple[str, ...], float]
    universe: float | None = None

    @staticmethod
    def of(sets: Mapping[str, AbstractSet[Hashable]], universe: int | None = None) -> Overlap:
        """Compute the regions of some sets: of one set first, then of two and more."""
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
        """Size of what is in this set and in no other."""
        return self.regions.get((name,), 0)

    def both(self, first: str, second: str) -> float:
        """|A ∩ B|."""
        return sum(size for region, size in self.regions.items() if first in region and second in region)

    def without(self, first: str, second: str) -> float:
        """|A − B|."""
        return sum(size for region, size in self.regions.items() if first in region and second not in region)

    @property
    def union(self) -> float:
        """Size of what is in any of the sets."""
        return sum(self.regions.values())

    @property
    def several(self) -> float:
        """Size of what is in more than one set."""
        return sum(size for region, size in self.regions.items() if len(region) > 1)

    @property
    def failure(self) -> float:
        """1 − |∪| / |U|: the share that is in no set; NaN if the universe is None or empty."""
        return 1 - self.union / self.universe if self.universe else math.nan

    def share(self, name: str) -> float:
        """|A| / |U|, for answered queries the hit rate; NaN if the universe is None or empty."""
        return self.size(name) / self.universe if self.universe else math.nan

    def complementarity(self, first: str, second: str) -> float:
        """RoC = |D − S| / |D| of the first set, D, with regard to the second, S (the paper's eq. 1).

        It is 1 if they are disjoint, 0 if S contains all of D, and NaN if D is empty.
        """
        size = self.size(first)
        return self.without(first, second) / size if size else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN becomes None."""
        pairs = [(a, b) for a in self.names for b in self.names if a != b]
        return {
            "sizes": {name: self.size(name) for name in self.names},
            "union": self.union,
            "universe": self.universe,
            "failure": _finite(self.failure),
            "regions": [{"in": list(region), "size": size} for region, size in self.regions.items()],
            "pairs": [
                {
                    "first": a,
                    "second": b,
                    "first_without_second": self.without(a, b),
                    "both": self.both(a, b),
                    "roc": _finite(self.complementarity(a, b)),
                }
                for a, b in pairs
            ],
        }


@dataclass(frozen=True)
class Shared:
    """Overlap of the first `k` documents of some runs.

    Attributes:
        k: the cutoff.
        found: documents, query by query (HIL, figure 3).
        relevant: relevant documents, query by query, among the judged ones.
        answered: queries with a relevant document, among all that count (RoC, figure 1).
        recall: by run, the mean over these queries of the share of relevant documents that is found.
        union_recall: the same for all runs together, so for up to `k` documents times the number of runs.
        per_query: for each query that counts, its relevant documents.
    """

    k: int
    found: Overlap
    relevant: Overlap
    answered: Overlap
    recall: Mapping[str, float]
    union_recall: float
    per_query: Mapping[str, Overlap]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without `per_query`."""
        overlaps = {"found": self.found, "relevant": self.relevant, "answered": self.answered}
        return {
            "k": self.k,
            **{kind: overlap.to_dict() for kind, overlap in overlaps.items()},
            "recall": dict(self.recall),
            "union_recall": self.union_recall,
        }


def share_of(
    runs: Mapping[str, Run],
    qrels: Qrels,
    k: int,
    relevant_from: int = 1,
    queries: Iterable[str] | None = None,
) -> Shared:
    """Compare the documents that runs find for the judged queries; a missing query finds nothing.

    Args:
        runs: two or more, by name.
        qrels: judgements; queries that do not count appear in `found` only.
        k: number of documents of each query to compare.
        relevant_from: lowest relevant grade.
        queries: those that count, the universe; by default those with a relevant document. Judgements by
            answer strings cover retrieved documents only; for them, pass every query with an answer.

    Raises:
        ConfigError: fewer than two runs, a cutoff or a grade below 1, or no query that counts.
    """
    if len(runs) < 2:
        raise ConfigError(f"an overlap needs at least two runs, found {', '.join(runs) or 'none'}")
    if k < 1:
        raise ConfigError(f"k must be at least 1, found {k}")
    if relevant_from < 1:
        raise ConfigError(f"relevant_from must be a grade of at least 1, found {relevant_from}")
    relevant = {
        query: {document for document, grade in grades.items() if grade >= relevant_from}
        for query, grades in qrels.items()
    }
    counted = (
        [query for query in relevant if relevant[query]] if queries is None else list(dict.fromkeys(queries))
    )
    if not counted:
        raise ConfigError(f"no query has a document with a grade of {relevant_from} or more")
    found = {
        name: {query: {document for document, _ in run[query][:k]} for query in qrels if query in run}
        for name, run in runs.items()
    }
    hits = {
        name: {query: documents.get(query, set()) & relevant.get(query, set()) for query in counted}
        for name, documents in found.items()
    }
    by_query = {query: {name: own[query] for name, own in hits.items()} for query in counted}
    answered = {name: {query for query in counted if own[query]} for name, own in hits.items()}
    totals = {query: len(relevant.get(query, ())) for query in counted}
    return Shared(
        k,
        Overlap.of({name: _pairs(documents) for name, documents in found.items()}),
        Overlap.of({name: _pairs(own) for name, own in hits.items()}, sum(totals.values())),
        Overlap.of(answered, len(counted)),
        {name: _recall(own, totals) for name, own in hits.items()},
        _recall({query: set().union(*own.values()) for query, own in by_query.items()}, totals),
        {query: Overlap.of(own, totals[query]) for query, own in by_query.items()},
    )


def _pairs(documents: Mapping[str, AbstractSet[str]]) -> set[Pair]:
    return {(query, document) for query, found in documents.items() for document in found}


def _recall(hits: Mapping[str, AbstractSet[str]], totals: Mapping[str, int]) -> float:
    """Mean recall; a query without known relevant documents counts as 0."""
    return sum(len(hits[query]) / (total or 1) for query, total in totals.items()) / len(totals)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
