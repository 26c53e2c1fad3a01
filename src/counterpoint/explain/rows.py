"""Rows of an explanation, one per query word: its matches and contributions by part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from counterpoint.search.explain import SHIFT
from counterpoint.search.feedback import FEEDBACK
from counterpoint.search.hits import Hit, WeighedWord
from counterpoint.types import Explanation, Span

__all__ = ["Keyword", "Row", "cells_of", "keywords_of", "rows_of", "share_of", "weighted_parts"]


@dataclass(frozen=True)
class Row:
    """A query word, or a contribution of no single word, with its contributions to the score.

    Attributes:
        label: the query word, or the label of the leaf ("(whole text)").
        query: span of the word in the query; None if the row belongs to no word.
        matches: for each part, the matched span of the document; of several, the one that contributed most.
        scores: contribution to each part.
        idf: for each part weighted by idf, the weights of the word's pieces in the order of the query.
        note: text shown instead of a match.
    """

    label: str
    query: Span | None
    matches: Mapping[str, Span]
    scores: Mapping[str, float]
    idf: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    note: str = ""

    @property
    def score(self) -> float:
        """Contribution to the score over all parts."""
        return sum(self.scores.values())

    @property
    def matched(self) -> str:
        """The matched text; parts are named only if they matched different text."""
        words = {part: span.text for part, span in self.matches.items()}
        if len({word.lower() for word in words.values()}) <= 1:
            return next(iter(words.values()), self.note)
        return ", ".join(f"{word} ({part})" for part, word in words.items())


def rows_of(explanation: Explanation, *, full: bool = False) -> list[Row]:
    """Group the leaves of all parts by query word, in the order of the query.

    Feedback is one row, or with `full` one row per feedback document.

    Parts split words differently (a lexical term, a whole word, a word-piece), so a leaf joins the row of the
    widest query word around it. Rows of no word come last. The scores of all rows sum to the explanation's
    score.
    """
    parts = explanation.children or (explanation,)
    leaves = [
        (part.label, leaf)
        for part in parts
        for leaf in ((part,) if part.label == FEEDBACK and not full else part.leaves())
    ]
    words = [leaf.query for _, leaf in leaves if leaf.query is not None]
    groups: dict[Span | str, list[tuple[str, Explanation]]] = {}
    for part, leaf in leaves:
        home = leaf.label if leaf.query is None else _widest(leaf.query, words)
        groups.setdefault(home, []).append((part, leaf))
    rows = [_row(home, members) for home, members in groups.items()]
    return sorted(rows, key=lambda row: (row.query is None, row.query.start if row.query else 0))


def weighted_parts(rows: Sequence[Row]) -> list[str]:
    """Parts whose query words are weighted by idf."""
    return list(dict.fromkeys(part for row in rows for part in row.idf))


def cells_of(row: Row, parts: Iterable[str], weighted: Sequence[str]) -> list[str]:
    """A row's contribution to each part, then its idf weights (one per piece) in each weighted part."""
    scores = [f"{row.scores[part]:.4f}" if part in row.scores else "" for part in parts]
    return scores + [" ".join(f"{weight:.2f}" for weight in row.idf.get(part, ())) for part in weighted]


def share_of(score: float, total: float) -> str:
    """The share of a score in percent; empty if the total is 0 or below, where shares mean nothing."""
    return f"{score / total:.0%}" if total > 0 else ""


@dataclass(frozen=True)
class Keyword:
    """A word of a document with its importance and contribution.

    Attributes:
        word: the word with its importance (None if a gate dropped it).
        score: contribution over the query words that it matched; None if it matched none.
    """

    word: WeighedWord
    score: float | None


def keywords_of(hit: Hit, most: int) -> dict[str, list[Keyword]]:
    """For each vector set that has words, the words of a document as in ColBERTer's figure 1.

    Args:
        hit: a hit with its explanation.
        most: number of unmatched words kept, the most important first, and of dropped words. All matched
            words are kept, so that scores still sum to the part's contribution.
    """
    parts = {} if hit.explanation is None else {part.label: part for part in hit.explanation.children}
    found = {}
    for name, words in ((name, words) for name, words in hit.words.items() if words):
        scores: dict[Span, float] = {}
        for leaf in parts[name].leaves() if name in parts else ():
            if leaf.document is not None:
                scores[leaf.document] = scores.get(leaf.document, 0.0) + leaf.score
        found[name] = []
        room = {"stored": most, "dropped": most}
        for word in words:
            kind = "dropped" if word.importance is None else "stored"
            score = scores.get(word.span) if kind == "stored" else None
            room[kind] -= score is None
            if score is not None or room[kind] >= 0:
                found[name].append(Keyword(word, score))
    return found


def _widest(span: Span, words: list[Span]) -> Span:
    holders = [word for word in words if word.start <= span.start and span.end <= word.end]
    return max(holders, key=lambda word: word.end - word.start)


def _row(home: Span | str, members: list[tuple[str, Explanation]]) -> Row:
    scores: dict[str, float] = {}
    matches: dict[str, Span] = {}
    most: dict[str, float] = {}
    idf: dict[str, tuple[float, ...]] = {}
    for part, leaf in members:
        if leaf.idf is not None:
            idf[part] = (*idf.get(part, ()), leaf.idf)
        scores[part] = scores.get(part, 0.0) + leaf.score
        if leaf.document is not None and leaf.score > most.get(part, -inf):
            matches[part], most[part] = leaf.document, leaf.score
    if isinstance(home, Span):
        return Row(home.text, home, matches, scores, idf)
    fed = sum(child.label != SHIFT for _, leaf in members for child in leaf.children)
    note = f"{fed} best {'document' if fed == 1 else 'documents'}" if fed else ""
    return Row(home, None, matches, scores, idf, note)
