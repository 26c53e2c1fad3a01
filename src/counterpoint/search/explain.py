"""Explain the score of a hit by part, query word and match. The leaves sum to the score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from itertools import compress

import numpy as np
from jaxtyping import Bool, Float, Int

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index, SetLayout, TextModel
from counterpoint.search.feedback import FEEDBACK, Feedback, units_of
from counterpoint.search.hits import Hit, WeighedWord
from counterpoint.search.prepared import PreparedQuery, Scored
from counterpoint.search.settings import LEXICAL, Plan
from counterpoint.types import Explanation, Span

__all__ = ["SHIFT", "explain_hits"]

WHOLE = "(whole text)"
SHIFT = "(normalisation)"
"""Label of the leaf for an amount of a contribution that belongs to no word and no document."""


def explain_hits(
    searched: tuple[Index, TextModel | None],
    query: PreparedQuery,
    plan: Plan,
    scored: Scored,
    hits: Sequence[Hit],
) -> tuple[Hit, ...]:
    """Add to each hit the tree of contributions to its score; `searched` holds the index and its model."""
    index, model = searched
    positions = _positions(index, hits)
    trees: dict[str, Sequence[Explanation]] = {}
    words: list[dict[str, tuple[WeighedWord, ...]]] = [{} for _ in hits]
    for part in plan.weights:
        if part == LEXICAL:
            texts = [hit.document.full_text for hit in hits]
            places = zip(positions.tolist(), texts, strict=True)
            trees[part] = [_lexical(index, query.text, position, text) for position, text in places]
        elif model is None or index.layouts[part].pooled:
            scores = index.sets[part].scores(query.asked(part), positions).tolist()
            trees[part] = [Explanation(part, score, (Explanation(WHOLE, score),)) for score in scores]
        else:
            trees[part], found = _of_rows((index, model), part, query, positions, hits)
            for each, mine in zip(words, found, strict=False):
                each[part] = mine
    if scored.feedback is not None:
        trees[FEEDBACK] = _feedback(index, plan.feedback, scored.feedback, (scored.positions, positions))
    slopes = {part: scored.slopes[part] / query.ceilings.get(part, 1.0) for part in trees}
    explained = []
    for i, hit in enumerate(hits):
        parts = [_as_contributed(made[i], slopes[part], hit.parts[part]) for part, made in trees.items()]
        tree = Explanation(plan.workflow, hit.score, tuple(parts))
        explained.append(replace(hit, explanation=tree, words=words[i]))
    return tuple(explained)


def _positions(index: Index, hits: Sequence[Hit]) -> Int[np.ndarray, " n"]:
    positions = [index.position_of(hit.document.id) for hit in hits]
    for hit, position in zip(hits, positions, strict=True):
        if position is None:
            raise ConfigError(f"document {hit.document.id!r} is no longer in the index")
    return np.array(positions, np.int64)


def _of_rows(
    searched: tuple[Index, TextModel],
    part: str,
    query: PreparedQuery,
    positions: Int[np.ndarray, " n"],
    hits: Sequence[Hit],
) -> tuple[list[Explanation], list[tuple[WeighedWord, ...]]]:
    """The tree of each hit for a part with several vectors per document; with a floor, also its words."""
    index, model = searched
    store, floored = index.sets[part], part in query.floored
    asked = model.spans([query.text], part, "query")[0]
    read = _read_rows(model, store.layout, part, [hit.document.full_text for hit in hits])
    ids = store.ids_of(positions) if store.layout.ids else [None] * len(hits)
    vectors = store.take(positions) if floored else None
    trees, words = [], []
    for i, best in enumerate(store.best_rows(query.asked(part), positions)):
        tree = _late_interaction(part, query, best)
        if store.layout.pool > 1 and ids[i] is None:  # nothing says which token a row belongs to
            trees.append(tree)
            continue
        spans, dropped = read[i].split(ids[i], hits[i].document.id)
        trees.append(tree.with_spans(asked, spans))
        if vectors is not None:
            words.append(_by_importance(vectors[i], spans, dropped))
    return trees, words


@dataclass(frozen=True)
class _Rows:
    """The rows of a text, in its order: those that an index stores and those that a gate has dropped.

    `weigh` computes the gate's value of every row. If `static`, one stored row represents all rows of its id.
    """

    spans: Sequence[Span]
    ids: Int[np.ndarray, " n"] | None
    weigh: Callable[[], Float[np.ndarray, " n"]]
    static: bool

    def split(self, stored: Int[np.ndarray, " m"] | None, document: str) -> tuple[list[Span], list[Span]]:
        """Return the spans of the stored rows, given their ids, and those of the dropped rows.

        Stored rows are a subset of the text's rows in its order, so ids identify them. If only some rows of
        an id are stored, the gate's values decide. In a static set, a stored row gets the span of the first
        row of its id, and none was dropped. A router that runs again may choose other keys for the few tokens
        where rounding decides. Then most ids match, and a row with another id gets the span at its place.

        Raises:
            ArtifactError: the stored rows are not rows of the text.
        """
        if self.ids is None or stored is None or np.array_equal(self.ids, stored):
            return list(self.spans), []
        if self.static:
            places = dict(zip(reversed(self.ids.tolist()), reversed(self.spans), strict=True))
            if places.keys() != set(stored.tolist()):
                raise _foreign(document)
            return [places[number] for number in stored.tolist()], []
        there, total = np.unique(self.ids, return_counts=True)
        left = np.array([np.count_nonzero(stored == number) for number in there])
        unclear = bool(((0 < left) & (left < total)).any())
        kept = heaviest_rows(self.ids, self.weigh() if unclear else np.zeros(len(self.ids)), stored)
        if kept is None:
            return self._most(self.ids.tolist(), stored.tolist(), document)
        return list(compress(self.spans, kept)), list(compress(self.spans, ~kept))

    def _most(self, ids: list[int], stored: list[int], document: str) -> tuple[list[Span], list[Span]]:
        matcher = SequenceMatcher(None, stored, ids, autojunk=False)
        if 2 * sum(block.size for block in matcher.get_matching_blocks()) <= len(stored):
            raise _foreign(document)
        kept: list[Span] = []
        dropped: list[Span] = []
        for _, start, end, first, last in matcher.get_opcodes():
            near = [min(first + at, max(first, last - 1), len(ids) - 1) for at in range(end - start)]
            kept += [self.spans[at] for at in near]
            dropped += self.spans[first + len(near) : last]
        return kept, dropped


def _foreign(document: str) -> ArtifactError:
    return ArtifactError(
        f"the vectors stored for {document!r} do not belong to its text; build the index again"
    )


def heaviest_rows(
    ids: Int[np.ndarray, " n"], weights: Float[np.ndarray, " n"], stored: Int[np.ndarray, " m"]
) -> Bool[np.ndarray, " n"] | None:
    """Match `stored` to a subsequence of `ids` with the greatest sum of weights; None if there is none.

    A gate keeps the rows with the highest weights, so this finds the rows it kept, even if a weight near the
    threshold now differs slightly from its value when the index was built.
    """
    best = np.full(len(stored) + 1, -np.inf)  # best[j]: sum for the first j stored rows, in the rows so far
    best[0] = 0
    taken = np.zeros((len(ids), len(stored)), bool)
    for i, (number, weight) in enumerate(zip(ids, weights, strict=True)):
        taken[i] = (stored == number) & (best[:-1] + weight > best[1:])
        best[1:] = np.where(taken[i], best[:-1] + weight, best[1:])
    if best[-1] == -np.inf:
        return None
    kept, j = np.zeros(len(ids), bool), len(stored)
    for i in reversed(range(len(ids))):
        if j and taken[i, j - 1]:
            kept[i] = True
            j -= 1
    return kept


def _read_rows(model: TextModel, layout: SetLayout, name: str, texts: Sequence[str]) -> list[_Rows]:
    spans = model.spans(texts, name, "document")
    ids = model.row_ids(texts, name, "document") if layout.ids else [None] * len(texts)

    def weigh(text: str) -> Float[np.ndarray, " n"]:
        if layout.pool > 1:  # of equal tokens the first is shown, since the index does not say which it was
            return np.zeros(len(model.spans([text], name, "document")[0]))
        return model.gate_weights([text], name).values[:, 0]

    static = layout.kind == "static"
    return [_Rows(s, i, partial(weigh, text), static) for s, i, text in zip(spans, ids, texts, strict=True)]


def _by_importance(
    values: Float[np.ndarray, "n d"], spans: Sequence[Span], dropped: Sequence[Span]
) -> tuple[WeighedWord, ...]:
    """All words of a document in the order of ColBERTer's figure 1."""
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


def _feedback(
    index: Index,
    sets: Sequence[str],
    found: Feedback,
    places: tuple[Int[np.ndarray, " c"], Int[np.ndarray, " n"]],
) -> list[Explanation]:
    """For each hit the contributions of the feedback documents: weight times similarity to the hit.

    `places` holds the positions of all candidates, and those of the hits.
    """
    candidates, positions = places
    best = candidates[found.rows]
    near = np.zeros((len(positions), len(best)))
    for name in sets:
        likes, units = (units_of(index.take(name, where).values) for where in (best, positions))
        near += np.stack([likes @ unit for unit in units]) / len(sets)
    names, made = index.names_of(best), []
    for values in (found.weights * near).tolist():
        leaves = tuple(
            Explanation(f"(like {name})", value) for name, value in zip(names, values, strict=True)
        )
        made.append(Explanation(FEEDBACK, sum((leaf.score for leaf in leaves), 0.0), leaves))
    return made


def _late_interaction(
    part: str, query: PreparedQuery, best: tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]
) -> Explanation:
    rows, values = best
    idf = query.idf[part].tolist() if part in query.idf else [None] * len(rows)
    leaves = tuple(
        Explanation(f"row {i}", value, rows=(i, None if row < 0 else row), idf=weight)
        for i, (row, value, weight) in enumerate(zip(rows.tolist(), values.tolist(), idf, strict=True))
    )
    return Explanation(part, float(values.sum()), leaves)


def _as_contributed(raw: Explanation, factor: float, contribution: float) -> Explanation:
    """Scale a part's own tree to its contribution.

    Fusion may add an amount that is no multiple of the score (a subtracted mean, a rank instead of a score).
    It belongs to no word and becomes a leaf of its own, so that the leaves still sum to the score.
    """
    scaled = raw.scaled(factor)
    rest = contribution - scaled.score
    if abs(rest) <= 1e-5 * max(1.0, abs(contribution)):
        return replace(scaled, score=contribution)
    kept = scaled.children if factor else ()
    return Explanation(raw.label, contribution, (*kept, Explanation(SHIFT, rest)))
