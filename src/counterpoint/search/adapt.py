"""Adapt the weights of parts to each query: a part with little evidence gets a low weight."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from counterpoint.search.settings import LEXICAL

__all__ = ["adapted", "evidence_of"]


def evidence_of(
    parts: Mapping[str, Float[np.ndarray, " c"]], known: float, rows: Mapping[str, float]
) -> dict[str, float]:
    """Evidence of each part for one query, from each part's scores of the candidates.

    For BM25 it is the share `known` of the query's idf that belongs to terms of the collection, for
    multi-vector sets the mean number of vectors per candidate (`rows`), and for other sets 1. It is 0 for a
    part that gives all candidates the same score.
    """
    has = {part: known if part == LEXICAL else rows.get(part, 1.0) for part in parts}
    return {part: has[part] if len(x) and x.min() < x.max() else 0.0 for part, x in parts.items()}


def adapted(
    weights: Mapping[str, float], adapt: Mapping[str, float], evidence: Mapping[str, float]
) -> dict[str, float]:
    """Adapt the weights of the parts to one query; they sum to 1 before and after.

    The vector sets keep their total weight and share it anew: the length of documents decides which of them
    is better, not how good all of them are. Unchanged if no part has evidence (see `evidence_of`).
    """

    def factor(part: str) -> float:
        has, how = evidence[part], adapt.get(part, 0.0)
        if not has or not how:
            return float(has > 0)
        return has**how if part == LEXICAL else min(1.0, has / how) ** 2

    found = {part: weight * factor(part) for part, weight in weights.items()}
    sets = [part for part in weights if part != LEXICAL]
    had, have = (sum(some[part] for part in sets) for some in (weights, found))
    for part in sets:
        found[part] = had * (found[part] / have) if have else 0.0  # had / have may be infinite
    whole = sum(found.values())
    return {part: weight / whole for part, weight in found.items()} if whole else dict(weights)
