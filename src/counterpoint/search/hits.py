"""What a search returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from counterpoint.frames import frame, html_table
from counterpoint.types import Document, Explanation, Span

if TYPE_CHECKING:
    import pandas

__all__ = ["Answer", "Hit", "WeighedWord"]

SHOWN = 200  # characters of a document in a notebook's table


@dataclass(frozen=True)
class WeighedWord:
    """A word of a document, and how much the model made of it before any query was known.

    Attributes:
        span: where it stands in the document's full text.
        importance: length of its stored vector, or its value where it has one component; None for a word
            that the index does not have because the model's gate dropped it.
    """

    span: Span
    importance: float | None


@dataclass(frozen=True)
class Hit:
    """One found document.

    Attributes:
        rank: from 1.
        score: what it was ranked by.
        document: as it was indexed.
        parts: what each part of the score contributed; they sum to `score`.
        explanation: the tree whose leaves sum to `score`, where it was asked for.
        words: with an explanation, by vector set whose vectors' lengths say how important a word is (sets
            that are exact or have a floor), the document's words, the most important first; dropped ones
            last, in the order of the text.
    """

    rank: int
    score: float
    document: Document
    parts: Mapping[str, float]
    explanation: Explanation | None = None
    words: Mapping[str, tuple[WeighedWord, ...]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The document's."""
        return self.document.id

    @property
    def title(self) -> str:
        """The document's; empty where it has none."""
        return self.document.title

    @property
    def text(self) -> str:
        """The document's, without the title."""
        return self.document.text

    @property
    def metadata(self) -> Mapping[str, object]:
        """The document's."""
        return self.document.metadata

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        document = self.document
        found: dict[str, Any] = {
            "rank": self.rank,
            "id": document.id,
            "score": self.score,
            "parts": dict(self.parts),
            "title": document.title,
            "text": document.text,
            "metadata": dict(document.metadata),
        }
        if document.parent is not None:
            found |= {"parent": document.parent, "start": document.start}
        if self.explanation is not None:
            found["explanation"] = explanation_to_dict(self.explanation, document)
        if self.words:
            found["words"] = {
                name: [{**_placed(word.span, document), "importance": word.importance} for word in words]
                for name, words in self.words.items()
            }
        return found


@dataclass(frozen=True)
class Answer:
    """The hits of one query, with how they were found; iterating gives the hits.

    Attributes:
        query: as it was asked.
        workflow: how it was searched.
        hits: the best first.
        weights: by part, the most that it can add to a score of this query; they sum to 1. Empty where parts
            are not divided by their ceilings.
    """

    query: str
    workflow: str
    hits: tuple[Hit, ...]
    weights: Mapping[str, float] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        """The hit at a place, from 0."""
        return self.hits[place]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        hits = [hit.to_dict() for hit in self.hits]
        return {"query": self.query, "workflow": self.workflow, "weights": dict(self.weights), "hits": hits}

    def to_pandas(self) -> pandas.DataFrame:
        """A row for every hit: `rank`, `id`, `score`, `title`, `text`, and a column for every part.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        columns: dict[str, list[Any]] = {
            name: [getattr(hit, name) for hit in self.hits]
            for name in ("rank", "id", "score", "title", "text")
        }
        columns |= {name: [hit.parts.get(name, 0.0) for hit in self.hits] for name in self._parts}
        return frame(columns)

    def _repr_html_(self) -> str:
        """The hits as a notebook shows them: the beginnings of their texts, and what each part added."""
        rows = [
            (
                hit.rank,
                hit.score,
                hit.id if hit.title in ("", hit.id) else f"{hit.title} [{hit.id}]",
                hit.text if len(hit.text) <= SHOWN else f"{hit.text[:SHOWN]}…",
                *(hit.parts.get(name, 0.0) for name in self._parts),
            )
            for hit in self.hits
        ]
        caption = f"{self.query} ({self.workflow})" if rows else f"{self.query}: no document matches"
        return html_table(caption, ("rank", "score", "document", "text", *self._parts), rows)

    @property
    def _parts(self) -> list[str]:
        return list(dict.fromkeys(name for hit in self.hits for name in hit.parts))


def explanation_to_dict(node: Explanation, document: Document) -> dict[str, Any]:
    """A tree as plain data; places count into the query, or into the field of the document that they name."""
    found: dict[str, Any] = {"label": node.label, "score": node.score}
    if node.query is not None:
        found["query"] = node.query._asdict()
    if node.document is not None:
        found["document"] = _placed(node.document, document)
    if node.idf is not None:
        found["idf"] = node.idf
    if node.children:
        found["children"] = [explanation_to_dict(child, document) for child in node.children]
    return found


def _placed(span: Span, document: Document) -> dict[str, Any]:
    """A piece of a document, placed in the title or the text as they are exported; nowhere if in both."""
    field, start, end = document.place(span) or (None, None, None)
    return {"text": span.text, "field": field, "start": start, "end": end}
