"""Types shared by all modules, without torch: documents, queries, spans, explanations, packed vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from counterpoint.errors import ShapeError

__all__ = ["Document", "Explanation", "Qrels", "Query", "Ragged", "Side", "Span", "rows_of_sets"]

Side = Literal["query", "document"]

Qrels = Mapping[str, Mapping[str, int]]
"""Relevance judgements: query id to document id to grade, in the order of the file."""


@dataclass(frozen=True, slots=True)
class Document:
    """One unit of retrieval: a whole document, or a passage of one.

    Attributes:
        id: unique in its collection; any non-empty string.
        text: the body.
        title: empty if there is none; encoded before the body.
        parent: for a passage, the id of the document that it was cut from.
        start: for a passage, where `text` begins in its parent's text, in characters.
        metadata: JSON values stored with the document.
    """

    id: str
    text: str
    title: str = ""
    parent: str | None = None
    start: int = 0
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def full_text(self) -> str:
        """The text that is encoded and matched: title and text joined by one space (BEIR's convention)."""
        return f"{self.title} {self.text}".strip() if self.title else self.text

    def place(self, span: Span) -> tuple[Literal["title", "text"], int, int] | None:
        """Field (title or text) of a span of `full_text`, with its start and end there.

        None if the span covers both, such as all of it.

        >>> found = Document("d", "A whale.", "Sea").place(Span("whale", 6, 11))
        >>> found
        ('text', 2, 7)
        """
        if not self.title:
            return "text", span.start, span.end
        joined = f"{self.title} {self.text}"
        stripped = len(joined) - len(joined.lstrip())
        start, end = span.start + stripped, span.end + stripped
        if end <= len(self.title):
            return "title", start, end
        text = len(self.title) + 1
        return ("text", start - text, end - text) if start >= text else None


class Query(NamedTuple):
    """A query and its id."""

    id: str
    text: str


class Span(NamedTuple):
    """A piece of a text, with its position in characters (end exclusive)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Explanation:
    """Explanation of a document's score: a tree whose leaves sum to it.

    Attributes:
        label: name of this node ("MaxSim(words)", "lexical", a query word).
        score: this node's contribution to the final score, with every weight above it applied.
        children: the nodes that sum to this one; none for a leaf.
        rows: for a leaf, the row of the query's set and the matched row of the document's set (None if no
            document row matched). Scorers fill in rows; the caller fills in the spans.
        query: the span of the query that this leaf is about, once known.
        document: the span of the document that it matched, once known.
        idf: for a leaf, the idf weight of its query row; it is included in the score.
    """

    label: str
    score: float
    children: tuple[Explanation, ...] = ()
    rows: tuple[int, int | None] | None = None
    query: Span | None = None
    document: Span | None = None
    idf: float | None = None

    def leaves(self) -> Iterator[Explanation]:
        """The leaves, left to right."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()

    def scaled(self, factor: float) -> Explanation:
        """Multiply every score of the tree, as a weight on a part does."""
        children = tuple(child.scaled(factor) for child in self.children)
        return replace(self, score=self.score * factor, children=children)

    def with_spans(self, query: Sequence[Span], document: Sequence[Span]) -> Explanation:
        """Replace row numbers by the spans of text of these rows."""
        children = tuple(child.with_spans(query, document) for child in self.children)
        if self.rows is None:
            return replace(self, children=children)
        row, match = self.rows
        found = None if match is None else document[match]
        return replace(self, children=children, query=query[row], document=found)


@dataclass(frozen=True)
class Ragged:
    """Packed vector sets of variable length: the layout of all stored and searched vectors.

    Attributes:
        values: the rows of all sets, one set after another.
        offsets: set `i` has the rows `offsets[i]:offsets[i + 1]`; starts with 0.
        ids: the id of each row (a vocabulary id or a word hash), if rows have ids.
    """

    values: Shaped[np.ndarray, "n d"]
    offsets: Int[np.ndarray, " b1"]
    ids: Int[np.ndarray, " n"] | None = None

    def __post_init__(self) -> None:
        rows = self.values.shape[0]
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != rows:
            raise ShapeError(f"offsets must run from 0 to the number of rows, {rows}")
        if self.ids is not None and self.ids.shape != (rows,):
            raise ShapeError(f"{rows} rows need {rows} ids, found an array of shape {self.ids.shape}")

    def __len__(self) -> int:
        """Number of sets."""
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """The rows of one set, as a view of shape (its length, d)."""
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def ids_of(self, index: int) -> np.ndarray:
        """The ids of one set's rows."""
        if self.ids is None:
            raise ShapeError("these vectors have no ids")
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> Int[np.ndarray, " b"]:
        """Number of rows of each set."""
        return np.diff(self.offsets)

    @property
    def dim(self) -> int:
        """Number of components of a vector."""
        return self.values.shape[1]

    def take(self, sets: Int[np.ndarray, " k"]) -> Ragged:
        """Copy the sets at these positions, in this order."""
        rows, offsets = rows_of_sets(self.offsets, np.asarray(sets, dtype=np.int64))
        return Ragged(self.values[rows], offsets, None if self.ids is None else self.ids[rows])

    @staticmethod
    def from_list(
        sets: Sequence[Float[np.ndarray, "_ d"]], ids: Sequence[np.ndarray] | None = None, *, dim: int
    ) -> Ragged:
        """Pack a list of (length, dim) arrays; `dim` is needed because the list may be empty."""
        offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in sets])]).astype(np.int64)
        values = np.concatenate([np.zeros((0, dim), np.float32), *sets])
        packed = None if ids is None else np.concatenate([np.zeros(0, np.int64), *ids])
        return Ragged(values, offsets, packed)

    @staticmethod
    def concatenate(parts: Sequence[Ragged]) -> Ragged:
        """Concatenate the sets of all parts."""
        if not parts:
            raise ShapeError("nothing to concatenate")
        starts = np.cumsum([0] + [part.offsets[-1] for part in parts[:-1]])
        offsets = [part.offsets[1:] + start for part, start in zip(parts, starts, strict=True)]
        with_ids = [part.ids for part in parts if part.ids is not None]
        return Ragged(
            np.concatenate([part.values for part in parts]),
            np.concatenate([[0], *offsets]),
            np.concatenate(with_ids) if len(with_ids) == len(parts) else None,
        )


def rows_of_sets(
    offsets: Int[np.ndarray, " b1"], sets: Int[np.ndarray, " k"]
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " k1"]]:
    """Row numbers of some packed sets in the order given, and the offsets of these sets once packed."""
    lengths = offsets[sets + 1] - offsets[sets]
    ends = np.cumsum(lengths)
    rows = np.arange(lengths.sum()) + np.repeat(offsets[sets] - (ends - lengths), lengths)
    return rows, np.concatenate([[0], ends])
