"""Results of a search: answers, hits and weighted words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from counterpoint.frames import frame, html_table
from counterpoint.types import Document, Explanation, Span

if TYPE_CHECKING:
    import pandas

__all__ = ["Answer", "Hit", "WeighedWord", "answer_from"]

SHOWN = 200  # characters of a document in a notebook's table


@dataclass(frozen=True)
class WeighedWord:
    """A word of a document with its importance to the model, independent of the query.

    Attributes:
        span: its place in the document's full text.
        importance: length of its stored vector, or its value if it has one component; None for a word that
            the index lacks because the model's gate dropped it.
    """

    span: Span
    importance: float | None


@dataclass(frozen=True)
class Hit:
    """One document in the result.

    Attributes:
        rank: rank, from 1.
        score: score that it was ranked by.
        document: the document as it was indexed.
        parts: contribution of each part; they sum to `score`.
        explanation: a tree whose leaves sum to `score`, if it was asked for.
        words: with an explanation, the document's words by vector set, most important first; dropped words
            last, in the order of the text. Only for sets whose vector lengths are the importance of a word:
            those that are exact or have a floor.
    """

    rank: int
    score: float
    document: Document
    parts: Mapping[str, float]
    explanation: Explanation | None = None
    words: Mapping[str, tuple[WeighedWord, ...]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Id of the document."""
        return self.document.id

    @property
    def title(self) -> str:
        """Title of the document; empty if it has none."""
        return self.document.title

    @property
    def text(self) -> str:
        """Text of the document, without the title."""
        return self.document.text

    @property
    def metadata(self) -> Mapping[str, object]:
        """Metadata of the document."""
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
    """The hits of one query, with the settings of the search; iterates over the hits.

    Attributes:
        query: the query as it was asked.
        workflow: the workflow of the search.
        hits: the hits, best first.
        weights: the most that each part can add to a score of this query; they sum to 1. Empty if parts are
            not divided by their ceilings.
        missing: numbers of shards that gave no answer; only a search that allows this has some.
    """

    query: str
    workflow: str
    hits: tuple[Hit, ...]
    weights: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[int, ...] = field(default=(), repr=False)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        """The hit at a position, from 0."""
        return self.hits[place]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        hits = [hit.to_dict() for hit in self.hits]
        missing = {"missing_shards": list(self.missing)} if self.missing else {}
        about = {"query": self.query, "workflow": self.workflow, "weights": dict(self.weights)}
        return {**about, **missing, "hits": hits}

    def to_pandas(self) -> pandas.DataFrame:
        """One row per hit: `rank`, `id`, `score`, `title`, `text`, and one column per part.

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
        """The hits as a notebook table: the beginnings of their texts, and each part's contribution."""
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
    """A tree as plain data; positions are within the query, or within the document's field they name."""
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
    """A span with its field, title or text as exported, and position there; no position if it is in both."""
    field, start, end = document.place(span) or (None, None, None)
    return {"text": span.text, "field": field, "start": start, "end": end}


def answer_from(data: Mapping[str, Any]) -> Answer:
    """The inverse of `Answer.to_dict`. Rows of explanations are not in the data, and stay unknown.

    Raises:
        KeyError, TypeError: these are not the data of an answer.
    """
    hits = tuple(_hit(found) for found in data["hits"])
    missing = tuple(data.get("missing_shards", ()))
    return Answer(data["query"], data["workflow"], hits, dict(data["weights"]), missing)


def _hit(data: Mapping[str, Any]) -> Hit:
    document = Document(
        data["id"],
        data["text"],
        data["title"],
        data.get("parent"),
        data.get("start", 0),
        data["metadata"],
    )
    explanation = data.get("explanation")
    return Hit(
        data["rank"],
        data["score"],
        document,
        data["parts"],
        None if explanation is None else _explanation(explanation, document),
        {
            name: tuple(WeighedWord(_span(word, document), word["importance"]) for word in words)
            for name, words in data.get("words", {}).items()
        },
    )


def _explanation(data: Mapping[str, Any], document: Document) -> Explanation:
    query, place = data.get("query"), data.get("document")
    return Explanation(
        data["label"],
        data["score"],
        tuple(_explanation(child, document) for child in data.get("children", ())),
        query=None if query is None else Span(**query),
        document=None if place is None else _span(place, document),
        idf=data.get("idf"),
    )


def _span(place: Mapping[str, Any], document: Document) -> Span:
    """The span of the full text that `Document.place` put into a field."""
    text = place["text"]
    if place["field"] is None:  # in both fields
        start = document.full_text.find(text)
        return Span(text, start, start + len(text))
    before = 0
    if document.title:
        joined = f"{document.title} {document.text}"
        before = len(joined.lstrip()) - len(joined)
        before += len(document.title) + 1 if place["field"] == "text" else 0
    return Span(text, place["start"] + before, place["end"] + before)
