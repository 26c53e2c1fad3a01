"""Pseudo-relevance feedback: rank candidates higher that are similar to the best ones (Rocchio 1971).

All parts decide which documents are best, so one found by a single part also helps to rank similar ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from counterpoint.index import Index
from counterpoint.search.fusion import Fusion, fuse
from counterpoint.search.prepared import Feedback, Scored, slopes_of
from counterpoint.search.settings import Plan, SearchSettings

__all__ = ["FEEDBACK", "likeness", "units_of", "with_feedback"]

FEEDBACK = "feedback"
"""Name of feedback among the parts of a score."""
LEAST = 1e-12  # lengths by which vectors are divided


def likeness(
    vectors: Sequence[Float[np.ndarray, "c d"]],
    scores: Float[np.ndarray, " c"],
    documents: int,
    owners: Sequence[str] | None = None,
) -> Feedback:
    """Compute the similarity of every candidate to the best `documents` candidates.

    The weight of each of the best is the difference of its score from that of the next candidate after them
    (from the last one, if there are no more). So scale and offset of the scores do not matter. If no score is
    higher than that, all similarities are 0.

    Args:
        vectors: for each pooled set, one row per candidate, of any length.
        scores: scores of the candidates so far.
        documents: number of candidates that count as the best.
        owners: the document of each candidate, if candidates are passages; only its best passage is used.
    """
    order = np.argsort(-scores, kind="stable")
    if owners is not None:
        _, first = np.unique(np.asarray(owners)[order], return_index=True)
        order = order[np.sort(first)]
    order = order[: documents + 1]
    best = order[:documents]
    above = scores[best] - scores[order[-1]] if len(order) else np.zeros(0)
    if not above.sum() > 0:
        return Feedback(np.zeros(len(scores)), best[:0], np.zeros(0))
    weights = above / above.sum()
    found = np.zeros(len(scores))
    for rows in vectors:  # by vecdot, which adds each row in the same order wherever it stands
        lengths = np.maximum(np.sqrt(np.vecdot(rows, rows)), LEAST)
        centre = (weights / lengths[best]) @ rows[best]
        found += np.vecdot(rows, centre.astype(rows.dtype)) / lengths
    return Feedback(found / len(vectors), best, weights)


def units_of(rows: Float[np.ndarray, "c d"]) -> Float[np.ndarray, "c d"]:
    """Scale every row to length 1; a row of zeros stays as it is."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), LEAST)


def with_feedback(index: Index, scored: Scored, plan: Plan, settings: SearchSettings) -> Scored:
    """Add feedback as one more part of the candidates' scores; unchanged if there is no feedback."""
    if not (settings.feedback and plan.feedback and len(scored.positions)):
        return scored
    vectors = [index.take(name, scored.positions).values for name in plan.feedback]
    owners = None
    if index.parents:
        owners = [index.parents.get(name, name) for name in index.names_of(scored.positions)]
    found = likeness(vectors, scored.scores, settings.feedback_documents, owners)
    weight = settings.feedback * sum(map(abs, plan.weights.values()))
    fusion = Fusion(weights={FEEDBACK: weight}, method=settings.method, normalise=settings.normalise)
    column = found.scores[:, None]
    _, added = fuse(column, fusion)
    shrunk = 1 / (1 + settings.feedback) if settings.scale == "ceiling" else 1.0
    contributions = np.concatenate([scored.contributions, added], axis=1) * shrunk
    slopes = {**scored.slopes, **slopes_of(column, added, fusion)}
    return replace(
        scored,
        scores=contributions.sum(axis=1),
        contributions=contributions,
        names=(*scored.names, FEEDBACK),
        slopes={name: slope * shrunk for name, slope in slopes.items()},
        feedback=found,
    )
