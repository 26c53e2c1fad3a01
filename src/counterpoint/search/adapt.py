"""Weights that follow the query and what is found for it: a part that knows little says little."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from counterpoint.search.settings import LEXICAL

__all__ = ["adapted", "evidence_of"]


def evidence_of(
    parts: Mapping[str, Float[np.ndarray, " c"]], known: float, rows: Mapping[str, float]
) -> dict[str, float]:
    """What each part has to go by.

    Args:
        parts: by part its scores of the candidates.
        known: the share of the query's idf that the collection has.
        rows: by set of several vectors a document, how many a candidate has on average.

    Returns:
        For BM25 `known`, for these sets their rows, for others 1; 0 for a part that scores all candidates
        alike.
    """
    has = {part: known if part == LEXICAL else rows.get(part, 1.0) for part in parts}
    return {part: has[part] if len(x) and x.min() < x.max() else 0.0 for part, x in parts.items()}


def adapted(
    weights: Mapping[str, float], adapt: Mapping[str, float], evidence: Mapping[str, float]
) -> dict[str, float]:
    """The weights of one query.

    Vector sets share among them the weight that they had together: how long documents are decides which of
    them is better, not how good all of them are.

    Args:
        weights: by part; they sum to 1.
        adapt: as `SearchSettings` has it.
        evidence: as `evidence_of` finds it.

    Returns:
        By part; they sum to 1. The weights as they were, if no part has anything to go by.
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
