"""First stages: propose candidates, with the scores of the parts that scored every document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index import Among, Index
from counterpoint.search.prepared import PreparedQuery
from counterpoint.search.settings import Plan, SearchSettings

__all__ = ["NONE", "NOTHING", "Proposal", "propose"]


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


NONE = np.zeros(0, np.int64)
NOTHING = Proposal(NONE, MappingProxyType({}), NONE)


def propose(
    queries: list[PreparedQuery], plan: Plan, depth: int, settings: SearchSettings, index: Index, among: Among
) -> Iterator[Proposal]:
    """Yield, for each query, the candidates and their scores by the parts that scored every document.

    Each first stage of the plan proposes `depth` candidates, or as many as the settings say if that is more,
    from the documents `among`. They are in the order that decides between equal scores.
    """
    effort = {"exhaustive": settings.exhaustive, "probes": settings.probes}
    looks = {
        part: index.part(part).look([query.asked(part) for query in queries], **effort) for part in plan.first
    }

    def proposed(i: int, k: int) -> Int[np.ndarray, " c"]:
        return _ordered(np.concatenate([look.best(i, k, among) for look in looks.values()]), among)

    for i in range(len(queries)):
        pool = proposed(i, settings.candidates)
        found = pool if depth <= settings.candidates else _ordered(np.append(pool, proposed(i, depth)), among)
        scores = {part: look.known(i, found) for part, look in looks.items()}
        yield Proposal(found, {part: known for part, known in scores.items() if known is not None}, pool)


def _ordered(positions: Int[np.ndarray, " n"], among: Among) -> Int[np.ndarray, " c"]:
    """The distinct positions, in the order that decides between equal scores."""
    found = np.unique(positions)
    order = among.at(found)
    return found if order is None else found[np.argsort(order)]
