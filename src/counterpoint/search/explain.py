"""Take the score of a hit apart: every query word, every part, every match. The leaves sum to the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from counterpoint.errors import ConfigError
from counterpoint.index import Index, TextModel
from counterpoint.index.kernels import best_rows
from counterpoint.search.hits import Hit
from counterpoint.search.settings import LEXICAL, Plan
from counterpoint.types import Explanation

if TYPE_CHECKING:
    from counterpoint.search.engine import PreparedQuery

__all__ = ["explain_hits"]

WHOLE = "(whole text)"
SHIFT = "(normalisation)"


def explain_hits(
    searched: tuple[Index, TextModel | None],
    query: PreparedQuery,
    plan: Plan,
    slopes: Mapping[str, float],
    hits: Sequence[Hit],
) -> tuple[Hit, ...]:
    """Add to each hit the tree that its score is the sum of.

    Args:
        searched: the index and its model.
        query: as it was scored.
        plan: the parts.
        slopes: by part, how much its contribution grows with its (scaled) score.
        hits: what was found.
    """
    index, model = searched
    texts = [hit.document.full_text for hit in hits]
    spans = {
        name: (model.spans([query.text], name, "query")[0], model.spans(texts, name, "document"))
        for name in plan.weights
        if model is not None and name != LEXICAL and not index.layouts[name].pooled
    }
    explained = []
    for i, hit in enumerate(hits):
        position = index.position_of(hit.document.id)
        if position is None:
            raise ConfigError(f"document {hit.document.id!r} has left the index")
        parts = []
        for part in plan.weights:
            if part == LEXICAL:
                raw = _lexical(index, query.text, position, texts[i])
            elif part in spans:
                raw = _late_interaction(index, part, query, position).with_spans(
                    spans[part][0], spans[part][1][i]
                )
            else:
                raw = _pooled(index, part, query, position)
            parts.append(_as_contributed(raw, slopes[part] / query.ceilings[part], hit.parts[part]))
        tree = Explanation(plan.workflow, hit.score, tuple(parts))
        explained.append(replace(hit, explanation=tree))
    return tuple(explained)


def _lexical(index: Index, query: str, position: int, text: str) -> Explanation:
    if index.lexical is None:
        raise ConfigError("this index has no lexical part")
    places = index.lexical.term_spans(text)
    leaves = tuple(
        Explanation(match.term, match.score, query=match.query, document=places.get(match.term))
        for match in index.lexical.matches(query, position)
    )
    return Explanation(LEXICAL, sum((leaf.score for leaf in leaves), 0.0), leaves)


def _pooled(index: Index, part: str, query: PreparedQuery, position: int) -> Explanation:
    score = float(index.take(part, np.array([position])).values[0] @ query.vectors[part][0])
    return Explanation(part, score, (Explanation(WHOLE, score),))


def _late_interaction(index: Index, part: str, query: PreparedQuery, position: int) -> Explanation:
    document = index.take(part, np.array([position]))
    if not len(document.values):
        return Explanation(part, 0.0, (Explanation(WHOLE, 0.0),))
    rows, values = best_rows(query.vectors[part], document, query.ids.get(part), part in query.floored)
    leaves = tuple(
        Explanation(f"row {i}", float(value), rows=(i, None if row < 0 else int(row)))
        for i, (row, value) in enumerate(zip(rows, values, strict=True))
    )
    return Explanation(part, float(values.sum()), leaves)


def _as_contributed(raw: Explanation, factor: float, contribution: float) -> Explanation:
    """Scale a part's own tree to what it contributed.

    What fusion added that is no multiple of the score (a mean taken off, a rank in place of a score) belongs
    to no word and becomes a leaf of its own, so that the sum stays true.
    """
    scaled = raw.scaled(factor)
    rest = contribution - scaled.score
    if abs(rest) <= 1e-5 * max(1.0, abs(contribution)):
        return replace(scaled, score=contribution)
    kept = scaled.children if factor else ()
    return Explanation(raw.label, contribution, (*kept, Explanation(SHIFT, rest)))
