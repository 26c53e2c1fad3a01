"""First stages: which documents are candidates, and what those who looked at every document say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index import Among, Index
from counterpoint.search.prepared import PreparedQuery
from counterpoint.search.settings import Plan, SearchSettings

__all__ = ["NONE", "NOTHING", "FirstStages", "Proposal"]


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

    def propose(
        self, queries: Sequence[PreparedQuery], plan: Plan, depth: int, among: Among = None
    ) -> Iterator[Proposal]:
        """For each query: the candidates, and their scores by the parts that looked at every document.

        Args:
            queries: one or more.
            plan: who proposes.
            depth: how many candidates each proposes, if these are more than the settings say.
            among: which documents may be candidates; None for all.
        """
        least = self.settings.candidates
        effort = {"exhaustive": self.settings.exhaustive, "probes": self.settings.probes}
        looks = {
            part: self.index.part(part).look([query.asked(part) for query in queries], **effort)
            for part in plan.first
        }

        def proposed(i: int, k: int) -> Int[np.ndarray, " c"]:
            return np.unique(np.concatenate([look.best(i, k, among) for look in looks.values()]))

        for i in range(len(queries)):
            pool = proposed(i, least)
            found = pool if depth <= least else np.union1d(pool, proposed(i, depth))
            scores = {part: look.known(i, found) for part, look in looks.items()}
            yield Proposal(found, {part: known for part, known in scores.items() if known is not None}, pool)
