"""Weights that follow the query: a part that knows little of a query says little of its documents."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from counterpoint.search.settings import LEXICAL

__all__ = ["adapted", "evidence_of"]


def evidence_of(parts: Mapping[str, Float[np.ndarray, " c"]], known: float | None) -> dict[str, float]:
    """What each part knows of a query, from 0 to 1.

    Args:
        parts: by part its scores of the candidates, over its ceiling.
        known: the share of the query's idf that the collection has; None without BM25.

    Returns:
        For BM25 `known`, for a vector set its best score; 0 for a part that scores all candidates alike.
    """
    found = {}
    for part, scores in parts.items():
        tells = len(scores) > 0 and scores.min() < scores.max()
        best = known if part == LEXICAL else float(scores.max(initial=0.0))
        found[part] = min(1.0, best or 0.0) if tells else 0.0
    return found


def adapted(
    weights: Mapping[str, float], powers: Mapping[str, float], evidence: Mapping[str, float]
) -> dict[str, float]:
    """The weights of one query.

    Each weight is multiplied by a power of what its part knows. Vector sets share among them the weight that
    they had together: which of them is better depends on the query more than how good all of them are.

    Args:
        weights: by part; they sum to 1.
        powers: by part, how strongly its weight follows; other parts keep theirs.
        evidence: as `evidence_of` finds it.

    Returns:
        By part; they sum to 1. The weights as they were, if no part knows anything.
    """
    found = {part: weight * evidence[part] ** powers.get(part, 0.0) for part, weight in weights.items()}
    sets = [part for part in weights if part in powers and part != LEXICAL]
    had, have = (sum(some[part] for part in sets) for some in (weights, found))
    for part in sets:
        found[part] *= had / have if have else 0.0
    whole = sum(found.values())
    return {part: weight / whole for part, weight in found.items()} if whole else dict(weights)
