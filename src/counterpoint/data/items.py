"""Objects of a program as a collection: strings, dicts, `Document`s, rows, and perhaps judgements."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from counterpoint.data.collection import Collection, Source
from counterpoint.data.fields import TEXTS, Fields, flat, listed
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader
from counterpoint.errors import ConfigError, DataError
from counterpoint.types import Document, Qrels

__all__ = ["collection_of", "items_of", "own_id"]

LABEL = "documents"


def items_of(given: Any, fields: Fields | None = None, policy: ReadPolicy | None = None) -> Collection:
    """Make a collection from strings, dicts and `Document`s, or from the rows of a pandas or polars frame.

    A document without an id gets one that depends only on its title and text. An iterator can be read once.

    Args:
        given: any iterable of these, or a frame.
        fields: which keys of dicts, or columns, hold what.
        policy: what to do about bad input; by default stop.

    Raises:
        ConfigError: it is none of these.
        DataError: a frame lacks a column with a declared type.
    """
    rows, size = _rows(given)
    fields = fields or Fields()
    if rows is not given:
        fields.check_declared(list(given.columns))
    return Collection(Items(rows, size, fields), policy or ReadPolicy())


@final
@dataclass(frozen=True)
class Items(Source):
    """Source of documents that are objects of a program."""

    rows: Iterable[Any]
    count: int | None
    fields: Fields = field(default_factory=Fields)

    @property
    def name(self) -> str:
        """Name for messages."""
        return LABEL

    @property
    def size(self) -> int | None:
        """Number of documents, if they can be counted."""
        return self.count

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield the documents, numbered from 1 for messages."""
        given: dict[str, int] = {}
        for number, row in enumerate(self.rows, start=1):
            found = self._document(row, number)
            if not found.id:
                found = replace(found, id=own_id(found.full_text, given))
            yield Located(found, LABEL, number)

    def _document(self, row: Any, number: int) -> Document:
        if isinstance(row, Document):
            return row
        if isinstance(row, str):
            return Document("", row)
        if isinstance(row, Mapping):
            return self._of_mapping(row, number)
        raise ConfigError(
            f"{LABEL}: item {number}: expected a string, a dict or a Document, found {_shown(row)}"
        )

    def _of_mapping(self, row: Mapping[str, Any], number: int) -> Document:
        """Convert one dict or row; its id is empty if it has none.

        Raises:
            DataError: it has no text, or lacks a named key.
        """
        named = self.fields.named
        try:
            # A frame's missing value must not be used as an id or a text.
            there = [name for name, value in row.items() if value is not None or name in named]
            columns = self.fields.resolve(there, "key", flat(row))
            if columns.text is None:
                raise DataError(
                    f"no text under {listed(TEXTS[:4])}; it has {listed(row)}. Name the key or column: text="
                )
            return columns.document(row, "")
        except DataError as error:
            raise DataError(f"item {number}: {error}", path=LABEL) from error


def own_id(text: str, given: dict[str, int]) -> str:
    """Make an id for a document's title and text: a hash, so it does not depend on other documents.

    `given` counts how often each id was given; the second document with one text gets the suffix `-2`.
    """
    name = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    given[name] = given.get(name, 0) + 1
    return name if given[name] == 1 else f"{name}-{given[name]}"


def _rows(given: Any) -> tuple[Iterable[Any], int | None]:
    if hasattr(given, "columns") and hasattr(given, "iter_rows"):  # polars
        return given.iter_rows(named=True), len(given)
    if hasattr(given, "columns") and hasattr(given, "itertuples"):  # pandas
        return given.to_dict("records"), len(given)
    if isinstance(given, bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        raise ConfigError(
            "documents: expected a path, 'ir_datasets:ID', 'stdlib:', a collection, a pandas or polars frame "
            f"or an iterable of strings, dicts or Documents; found {_shown(given)}"
        )
    return given, len(given) if hasattr(given, "__len__") else None  # pyright: ignore[reportArgumentType]


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} ({text if len(text) <= 60 else f'{text[:60]}…'})"


@dataclass(frozen=True)
class Memory(Source):
    """Source of data that are already in memory."""

    label: str
    held: tuple[Document, ...]
    texts: Mapping[str, str]
    judged: Mapping[str, Qrels]
    facts: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """Name as given."""
        return self.label

    @property
    def splits(self) -> tuple[str, ...]:
        """The keys of the judgements."""
        return tuple(sorted(self.judged))

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.held)

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield the documents, numbered from 1 for messages."""
        return (Located(document, self.label, number) for number, document in enumerate(self.held, 1))

    def queries(self, policy: ReadPolicy) -> dict[str, str]:
        """A copy."""
        return dict(self.texts)

    def query_metadata(self, policy: ReadPolicy) -> dict[str, dict[str, Any]]:
        """A copy."""
        return {query: dict(facts) for query, facts in self.facts.items() if facts}

    def qrels(self, split: str, policy: ReadPolicy) -> dict[str, dict[str, int]]:
        """A copy."""
        return {query: dict(grades) for query, grades in self.judged[split].items()}


def collection_of(
    documents: Iterable[Document],
    *,
    name: str = "memory",
    queries: Mapping[str, str] | None = None,
    qrels: Mapping[str, Qrels] | None = None,
    query_metadata: Mapping[str, Mapping[str, Any]] | None = None,
    policy: ReadPolicy | None = None,
) -> Collection:
    """Make a collection from documents in memory; `qrels` maps split to judgements."""
    held = Memory(name, tuple(documents), queries or {}, qrels or {}, query_metadata or {})
    return Collection(held, policy or ReadPolicy())
