"""Take the score of a hit apart: every query word, every part, every match. The leaves sum to the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index, SetLayout, TextModel
from counterpoint.index.kernels import best_rows
from counterpoint.search.hits import Hit, WeighedWord
from counterpoint.search.settings import LEXICAL, Plan
from counterpoint.types import Explanation, Ragged, Span

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
    sets = [name for name in plan.weights if name != LEXICAL and not index.layouts[name].pooled]
    asked, stored = {}, {}
    if model is not None:
        asked = {name: model.spans([query.text], name, "query")[0] for name in sets}
        stored = {name: _stored_rows(model, index.layouts[name], name, texts) for name in sets}
    explained = []
    for i, hit in enumerate(hits):
        position = index.position_of(hit.document.id)
        if position is None:
            raise ConfigError(f"document {hit.document.id!r} has left the index")
        parts, words = [], {}
        for part in plan.weights:
            if part == LEXICAL:
                raw = _lexical(index, query.text, position, texts[i])
            elif part in stored:
                document = index.take(part, np.array([position]))
                spans, dropped = stored[part][i].split(document, hit.document.id)
                raw = _late_interaction(part, query, document).with_spans(asked[part], spans)
                if part in query.floored:
                    words[part] = _by_importance(document, spans, dropped)
            else:
                raw = _pooled(index, part, query, position)
            parts.append(_as_contributed(raw, slopes[part] / query.ceilings[part], hit.parts[part]))
        tree = Explanation(plan.workflow, hit.score, tuple(parts))
        explained.append(replace(hit, explanation=tree, words=words))
    return tuple(explained)


@dataclass(frozen=True)
class _Rows:
    """What the rows of a text stand for: those that an index keeps and those that a gate has dropped."""

    spans: Sequence[Span]
    ids: Int[np.ndarray, " n"] | None

    def split(self, stored: Ragged, document: str) -> tuple[list[Span], list[Span]]:
        """The places of the stored rows and those of the others, each in the order of the text.

        Stored rows are some of the text's, in its order, so their ids tell which.

        Raises:
            ArtifactError: they are not.
        """
        if self.ids is None or stored.ids is None:
            return list(self.spans), []
        wanted, at = stored.ids.tolist(), 0
        kept: list[Span] = []
        dropped: list[Span] = []
        for span, number in zip(self.spans, self.ids.tolist(), strict=True):
            here = at < len(wanted) and number == wanted[at]
            (kept if here else dropped).append(span)
            at += here
        if at < len(wanted):
            raise ArtifactError(
                f"the vectors stored for {document!r} are not of its text's words; build the index again"
            )
        return kept, dropped


def _stored_rows(model: TextModel, layout: SetLayout, name: str, texts: Sequence[str]) -> list[_Rows]:
    """The rows of each text, before a gate."""
    spans = model.spans(texts, name, "document")
    ids = model.row_ids(texts, name, "document") if layout.ids else [None] * len(texts)
    return [_Rows(*row) for row in zip(spans, ids, strict=True)]


def _by_importance(
    document: Ragged, spans: Sequence[Span], dropped: Sequence[Span]
) -> tuple[WeighedWord, ...]:
    """All words of a document, as ColBERTer's figure 1 orders them."""
    values = document.values
    lengths = values[:, 0] if values.shape[1] == 1 else np.linalg.norm(values, axis=1)
    kept = [WeighedWord(span, value) for span, value in zip(spans, lengths.tolist(), strict=True)]
    kept.sort(key=lambda word: -(word.importance or 0.0))
    return (*kept, *(WeighedWord(span, None) for span in dropped))


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


def _late_interaction(part: str, query: PreparedQuery, document: Ragged) -> Explanation:
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
