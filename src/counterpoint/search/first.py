"""First stages: which documents are candidates, and what those who looked at every document say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ConfigError
from counterpoint.index import Index
from counterpoint.search.prepared import PreparedQuery
from counterpoint.search.settings import LEXICAL, Plan, SearchSettings

__all__ = ["NONE", "NOTHING", "FirstStages", "Proposal", "best_of", "lexical_scores"]


@dataclass(frozen=True)
class Proposal:
    """Candidates of one query.

    Attributes:
        positions: in the index.
        known: their scores by the parts that have scored them already.
        pool: those of them that are proposed whatever the number of documents asked for; what they score
            decides the weights of the query.
    """

    positions: Int[np.ndarray, " c"]
    known: Mapping[str, Float[np.ndarray, " c"]]
    pool: Int[np.ndarray, " p"]


GROUPS = 1024  # of scores, whose maxima give a bound
NONE = np.zeros(0, np.int64)
NOTHING = Proposal(NONE, MappingProxyType({}), NONE)


@final
class FirstStages:
    """The parts of an index that propose candidates."""

    def __init__(self, index: Index, settings: SearchSettings):
        self.index, self.settings = index, settings

    def propose(self, queries: Sequence[PreparedQuery], plan: Plan, depth: int) -> Iterator[Proposal]:
        """For each query: the candidates, and their scores by the parts that looked at every document."""
        least = self.settings.candidates
        graphs = [part for part in plan.first if self._has_graph(part)]
        near = {k: [self._nearest(part, queries, k) for part in graphs] for k in {least, max(depth, least)}}
        everywhere = {part: self._scores(part, queries) for part in plan.first if part not in graphs}

        def proposed(i: int, k: int) -> Int[np.ndarray, " c"]:
            best = (
                best_of(scores[i], k, matching=part == LEXICAL or part in self.settings.exact)
                for part, scores in everywhere.items()
            )
            return np.unique(np.concatenate([*best, *(found[i] for found in near[k])]))

        for i in range(len(queries)):
            pool = proposed(i, least)
            found = pool if depth <= least else np.union1d(pool, proposed(i, depth))
            yield Proposal(found, {part: scores[i][found] for part, scores in everywhere.items()}, pool)

    def _nearest(self, part: str, queries: Sequence[PreparedQuery], k: int) -> list[Int[np.ndarray, " c"]]:
        return self.index.nearest(part, np.concatenate([query.vectors[part] for query in queries]), k)

    def _has_graph(self, part: str) -> bool:
        return part != LEXICAL and self.index.layouts[part].ann is not None and not self.settings.exhaustive

    def _scores(self, part: str, queries: Sequence[PreparedQuery]) -> Float[np.ndarray, "q n"]:
        """One part's score of every document, unscaled."""
        if part == LEXICAL:
            return np.stack([lexical_scores(self.index, query.text) for query in queries])
        rows = [query.vectors[part] for query in queries]
        if self.index.layouts[part].pooled:
            return self.index.pooled_scores(part, np.concatenate(rows))
        if part not in self.settings.exact:
            return self.index.all_maxsim_scores(part, rows, floor=self.settings.floors(part))
        ids = [query.ids[part] for query in queries]
        if not self.index.layouts[part].inverted:  # built for other settings
            return self.index.all_maxsim_scores(part, rows, ids, floor=True)
        return np.stack([self.index.inverted_scores(part, *pair) for pair in zip(rows, ids, strict=True)])


def lexical_scores(index: Index, text: str) -> Float[np.ndarray, " n"]:
    """BM25 of every document.

    Raises:
        ConfigError: the index has no postings.
    """
    if index.lexical is None:
        raise ConfigError("this index has no lexical part")
    return index.lexical.scores(text)


def best_of(scores: Float[np.ndarray, " n"], k: int, *, matching: bool) -> Int[np.ndarray, " c"]:
    """Positions of the best `k`, of equal ones the first; fewer are always among more.

    Where words must match, a document that has none of them is no candidate.
    """
    k = min(k, len(scores))
    bound = _bound(scores, k)
    near = np.flatnonzero(scores > 0 if matching and bound <= 0 else scores >= bound)
    if len(near) < k:
        return near
    found = scores[near]
    least = np.partition(found, -k)[-k]
    above = near[found > least]
    return np.concatenate([above, near[found == least][: k - len(above)]])


def _bound(scores: Float[np.ndarray, " n"], k: int) -> float:
    """A number that at least `k` scores reach: few of the others do, and they are quickly told apart."""
    groups = max(GROUPS, 4 * k)
    if len(scores) < 2 * groups:
        return -np.inf
    whole = len(scores) - len(scores) % groups
    return np.partition(scores[:whole].reshape(-1, groups).max(axis=0), -k)[-k]
