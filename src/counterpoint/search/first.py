"""First stages: propose candidates, with the scores of the parts that scored every document."""

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
        positions: their positions in the index.
        known: their scores by the parts that have scored them already.
        pool: positions of those that are proposed whatever the number of documents asked for; their scores
            decide the adapted weights of the query.
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
        """Yield, for each query, the candidates and their scores by the parts that scored every document.

        Args:
            queries: one or more queries.
            plan: its first stages propose.
            depth: candidates per first stage, if this is more than in the settings.
            among: the documents that may be candidates; None for all.
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
