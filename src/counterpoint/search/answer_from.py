"""Read an answer from the plain data that `Answer.to_dict` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from counterpoint.search.hits import Answer, Hit, WeighedWord
from counterpoint.types import Document, Explanation, Span

__all__ = ["answer_from"]


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
