"""Feedback: candidates that are like the best of the hybrid's are ranked higher (Rocchio 1971).

Both halves take part in saying which documents those are, so what either found alone helps to find its like.
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
"""Name of what feedback adds, among the parts of a score."""


def likeness(
    vectors: Sequence[Float[np.ndarray, "c d"]],
    scores: Float[np.ndarray, " c"],
    documents: int,
    owners: Sequence[str] | None = None,
) -> Feedback:
    """Liken every candidate to the best `documents` of them.

    Each of the best weighs as much as its score is above that of the next one after them (the last one, where
    there are no more), so it does not matter on what scale scores are, nor where it begins. Where no score is
    above that, nothing is said: all are 0.

    Args:
        vectors: of each pooled set, a row a candidate, of any length.
        scores: what the candidates are ranked by so far.
        documents: how many are taken for the best.
        owners: where candidates are passages, the document of each: only the best of a document is taken.
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
    for rows in vectors:
        units = units_of(rows)
        found += units @ (weights @ units[best])
    return Feedback(found / len(vectors), best, weights)


def units_of(rows: Float[np.ndarray, "c d"]) -> Float[np.ndarray, "c d"]:
    """Every row scaled to length 1; a row of zeros stays one."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def with_feedback(index: Index, scored: Scored, plan: Plan, settings: SearchSettings) -> Scored:
    """The same candidates with feedback as one more part of their scores; as they were without any."""
    if not (settings.feedback and plan.feedback and len(scored.positions)):
        return scored
    vectors = [index.take(name, scored.positions).values for name in plan.feedback]
    owners = None
    if index.parents:
        owners = [index.parents.get(name, name) for name in index.names_of(scored.positions)]
    found = likeness(vectors, scored.scores, settings.feedback_documents, owners)
    whole = sum(abs(weight) for weight in plan.weights.values())
    fusion = Fusion(
        weights={FEEDBACK: settings.feedback * whole}, method=settings.method, normalise=settings.normalise
    )
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
