"""First stages: propose candidates, with the scores of the parts that scored every document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
        positions: in the index, of those that every part scores.
        known: their scores by the parts that have scored them already.
        pool: positions of those that are proposed whatever the number of documents asked for; their scores
            decide the adapted weights of the query.
        whole: scores of all of these by the parts that propose, if not all of them are scored by every part.
    """

    positions: Int[np.ndarray, " c"]
    known: Mapping[str, Float[np.ndarray, " c"]]
    pool: Int[np.ndarray, " p"]
    whole: Mapping[str, Float[np.ndarray, " p"]] = field(default_factory=dict)


TWICE = 2  # as many candidates as were asked for are refined, so that the last of them can change places
NONE = np.zeros(0, np.int64)
NOTHING = Proposal(NONE, MappingProxyType({}), NONE)


def propose(
    queries: list[PreparedQuery], plan: Plan, depth: int, settings: SearchSettings, index: Index, among: Among
) -> Iterator[Proposal]:
    """Yield, for each query, the candidates and their scores by the parts that scored every document.

    Each first stage of the plan proposes `depth` candidates, or as many as the settings say if that is more,
    from the documents `among`. They are in the order that decides between equal scores. If several parts
    propose and others only score, these score the best of the candidates (`SearchSettings.refined`).
    """
    effort = {"exhaustive": settings.exhaustive, "probes": settings.probes}
    looks = {
        part: index.part(part).look([query.asked(part) for query in queries], **effort) for part in plan.first
    }

    def proposed(i: int, k: int) -> Int[np.ndarray, " c"]:
        return _ordered(np.concatenate([look.best(i, k, among) for look in looks.values()]), among)

    refines = _refines(plan, settings)
    for i, query in enumerate(queries):
        pool = proposed(i, settings.candidates)
        found = pool if depth <= settings.candidates else _ordered(np.append(pool, proposed(i, depth)), among)
        scores = {part: look.known(i, found) for part, look in looks.items()}
        known = {part: of_part for part, of_part in scores.items() if of_part is not None}
        if refines and len(found) > (limit := max(settings.refined, TWICE * depth)):
            missing = [part for part in looks if part not in known]
            known |= {part: index.part(part).scores(query.asked(part), found) for part in missing}
            yield _refined(query, Proposal(found, known, pool), limit)
        else:
            yield Proposal(found, known, pool)


def _refines(plan: Plan, settings: SearchSettings) -> bool:
    """Whether the best candidates can be told by the parts that propose: their sum is a part of the score."""
    asked, scoring = set(plan.first), set(plan.weights)
    return len(asked) > 1 and asked < scoring and settings.adapts and not settings.exhaustive


def _refined(query: PreparedQuery, found: Proposal, limit: int) -> Proposal:
    """The candidates with the highest sums of known scores, each divided by its ceiling, in their order.

    Weights do not count, so that one search serves several weights.
    """
    total = sum(scores.astype(np.float64) / query.ceilings[part] for part, scores in found.known.items())
    best = np.sort(np.argsort(-total, kind="stable")[:limit])
    of_pool = np.isin(found.positions, found.pool, assume_unique=True)
    whole = {part: scores[of_pool] for part, scores in found.known.items()}
    known = {part: scores[best] for part, scores in found.known.items()}
    return Proposal(found.positions[best], known, found.pool, whole)


def _ordered(positions: Int[np.ndarray, " n"], among: Among) -> Int[np.ndarray, " c"]:
    """The distinct positions, in the order that decides between equal scores."""
    found = np.unique(positions)
    order = among.at(found)
    return found if order is None else found[np.argsort(order)]
