"""What a program has at hand, as a collection: strings, dicts, `Document`s, rows of a frame."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from counterpoint.data.collection import Collection, Source
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader
from counterpoint.errors import ConfigError, DataError
from counterpoint.types import Document

__all__ = ["Fields", "items_of", "own_id"]

IDS = ("id", "_id", "docid")
TEXTS = ("text", "contents", "body")
LABEL = "documents"


@final
@dataclass(frozen=True)
class Fields:
    """Which keys or columns hold what, where documents are dicts or rows of a frame.

    Attributes:
        id: the id's; where None, one of "id", "_id" and "docid", if there is one.
        title: the title's; "title" where None, if there is one.
        text: the text's; where None, one of "text", "contents" and "body".
        metadata: those that are kept as metadata; all others where None.
    """

    id: str | None = None
    title: str | None = None
    text: str | None = None
    metadata: tuple[str, ...] | None = None

    def document(self, row: Mapping[str, Any], number: int) -> Document:
        """One row; its id is empty where it has none.

        Raises:
            DataError: it has no text, or lacks what was named.
        """
        id_ = self._key(row, "id", self.id, IDS, number)
        title = self._key(row, "title", self.title, ("title",), number)
        text = self._key(row, "text", self.text, TEXTS, number)
        if text is None:
            raise DataError(
                f"item {number} has no text under {_listed(TEXTS)}; it has {_listed(list(row)[:8])}. "
                "Name the key or column: text=",
                path=LABEL,
            )
        found = {name: _text(row[key]) for name, key in (("id", id_), ("title", title)) if key is not None}
        rest = self._rest(row, (id_, title, text))
        return Document(found.get("id", ""), _text(row[text]), found.get("title", ""), metadata=rest)

    def _key(
        self, row: Mapping[str, Any], what: str, named: str | None, usual: tuple[str, ...], number: int
    ) -> str | None:
        """The key under which a row has something; None where nothing was named and it has nothing."""
        if named is None:
            return next((key for key in usual if row.get(key) is not None), None)
        if named not in row:
            raise DataError(f"item {number} has no {what} under {named!r}; it has {_listed(row)}", path=LABEL)
        return named

    def _rest(self, row: Mapping[str, Any], taken: tuple[str | None, ...]) -> dict[str, object]:
        if self.metadata is not None:
            return {key: row.get(key) for key in self.metadata}
        rest = {str(key): value for key, value in row.items() if key not in taken}
        nested = rest.get("metadata")
        if isinstance(nested, Mapping):
            del rest["metadata"]
            rest |= nested
        return rest


def items_of(given: Any, fields: Fields | None = None, policy: ReadPolicy | None = None) -> Collection:
    """A collection of strings, dicts and `Document`s, or of the rows of a pandas or polars frame.

    A document without an id gets one that depends on its title and text alone. An iterator can be read once.

    Args:
        given: any iterable of these, or a frame.
        fields: which keys of dicts, or columns, hold what.
        policy: what to do about bad input; by default stop.

    Raises:
        ConfigError: it is nothing of the kind.
    """
    rows, size = _rows(given)
    return Collection(Items(rows, size, fields or Fields()), policy or ReadPolicy())


@final
@dataclass(frozen=True)
class Items(Source):
    """Documents that a program has."""

    rows: Iterable[Any]
    count: int | None
    fields: Fields = field(default_factory=Fields)

    @property
    def name(self) -> str:
        """For messages."""
        return LABEL

    @property
    def size(self) -> int | None:
        """Number of documents, where they can be counted."""
        return self.count

    def documents(self, reader: Reader) -> Iterator[Located]:
        """The documents, numbered from 1 for messages."""
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
            return self.fields.document(row, number)
        raise ConfigError(
            f"{LABEL}: item {number}: expected a string, a dict or a Document, found {_shown(row)}"
        )


def own_id(text: str, given: dict[str, int]) -> str:
    """An id for a text without one: a hash, so that it stays when other documents come and go.

    Args:
        text: of the document, title and all.
        given: how often each id was given before; the second document of one text has `-2` behind its id.
    """
    name = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    given[name] = given.get(name, 0) + 1
    return name if given[name] == 1 else f"{name}-{given[name]}"


def _rows(given: Any) -> tuple[Iterable[Any], int | None]:
    """The items of a frame or of an iterable, and their number where it is known."""
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


def _text(value: Any) -> str:
    """A cell as text; what a frame has for a missing value is unequal to itself."""
    return "" if value is None or value != value else str(value)


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(repr, names))


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} ({text if len(text) <= 60 else f'{text[:60]}…'})"
