"""Which keys, columns or fields hold id, title and text: as given, or detected by usual names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from counterpoint.errors import DataError
from counterpoint.types import Document

__all__ = ["IDS", "TEXTS", "TITLES", "Columns", "Fields", "chosen", "flat", "listed"]

IDS = ("id", "_id", "docid", "doc_id", "document_id", "pid", "uid", "uuid")
TITLES = ("title", "headline", "heading", "subject", "name")
TEXTS = ("text", "contents", "content", "body", "document", "document_text", "passage", "abstract")
TEXTS += ("description", "summary", "message", "comment")


@final
@dataclass(frozen=True)
class Fields:
    """Which keys or columns hold what, in dicts, records, or rows of a frame or file.

    Usual names are matched without regard to case.

    Attributes:
        id: of the id; if None, a usual name: "id", "_id", "docid", ….
        title: of the title; if None, "title" or another usual name.
        text: of the text; if None, a usual name: "text", "contents", "content", "body", ….
        metadata: those to keep as metadata; all others if None.
        declared: metadata with a declared type. A table must have them; records and files of a folder may
            lack them.
    """

    id: str | None = None
    title: str | None = None
    text: str | None = None
    metadata: tuple[str, ...] | None = None
    declared: tuple[str, ...] = ()

    @property
    def placed(self) -> bool:
        """Whether the field of id, title or text is given, so that no usual layout applies."""
        return any(name is not None for name in (self.id, self.title, self.text))

    @property
    def named(self) -> tuple[str, ...]:
        """Every given name."""
        return tuple(name for name in (self.id, self.title, self.text, *(self.metadata or ())) if name)

    def resolve(
        self, names: Sequence[str], what: str = "column", inside: Iterable[str] | None = None
    ) -> Columns:
        """Find the columns of id, title and text among these names.

        Args:
            names: all columns or keys.
            what: what messages call one of them.
            inside: names that may be kept as metadata, if they are not the same: those of `flat`.

        Raises:
            DataError: a given name is missing.
        """
        for option, name in (("id", self.id), ("title", self.title), ("text", self.text)):
            if name is not None and name not in names:
                raise DataError(
                    f"no {what} {name!r} for the {option}; there are {listed(names)}. "
                    f"Name another (--{option}, {option}=)"
                )
        _check_metadata(self.metadata or (), list(names if inside is None else inside), what)
        taken = {self.id, self.title, self.text}
        usual = {}
        for name in names:
            if name not in taken and isinstance(name, str):
                usual.setdefault(name.strip().casefold(), name)
        found = {
            option: given or next((usual[name] for name in likely if name in usual), None)
            for option, given, likely in (
                ("id", self.id, IDS), ("title", self.title, TITLES), ("text", self.text, TEXTS)
            )
        }  # fmt: skip
        return Columns(tuple(names), **found, metadata=self.metadata)

    def check_declared(self, columns: Sequence[str]) -> None:
        """Check that a table has the metadata with a declared type.

        Raises:
            DataError: a column is missing.
        """
        _check_metadata(self.declared, columns, "column")


@final
@dataclass(frozen=True)
class Columns:
    """What each column of a table, or key of a record, holds.

    Attributes:
        names: all of them.
        id: None if ids are generated.
        title: None if documents have no title.
        text: None if the text joins all of them, one line `name: value` each.
        metadata: those to keep; if None, all except id, title and text.
    """

    names: tuple[str, ...]
    id: str | None = None
    title: str | None = None
    text: str | None = None
    metadata: tuple[str, ...] | None = None

    def document(self, row: Mapping[str, Any], made: str) -> Document:
        """Convert one row or record.

        Args:
            row: values by name; a missing one counts as empty, except for id and text.
            made: the id if no column holds ids.

        Raises:
            DataError: id or text is missing, or one of the three is a list or an object.
        """
        for name in (self.id, self.text):
            if name is not None and name not in row:
                raise DataError(f"no {name!r} among {listed(row)}")
        id_ = made if self.id is None else text_of(row, self.id)
        title = "" if self.title is None else text_of(row, self.title)
        text = _joined(row) if self.text is None else text_of(row, self.text)
        return Document(id_, text, title, metadata=self._rest(row))

    def _rest(self, row: Mapping[str, Any]) -> dict[str, object]:
        if self.metadata is not None:
            return chosen(row, self.metadata)
        taken = () if self.text is None else (self.id, self.title, self.text)
        return flat({str(name): value for name, value in row.items() if name not in taken})

    def __str__(self) -> str:
        """Description for the user."""
        found = [f"{what}={getattr(self, what)!r}" for what in ("id", "title", "text") if getattr(self, what)]
        if self.text is None:
            found.append("text=all of them")
        return ", ".join(found) + ("" if self.id else "; ids are line numbers")


def text_of(row: Mapping[str, Any], name: str) -> str:
    """A cell as text; a frame's missing value is unequal to itself, and becomes empty.

    Raises:
        DataError: it is a list or an object.
    """
    value = row.get(name)
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list | tuple | set):
        raise DataError(f"{name!r} must be a text, found {type(value).__name__} ({str(value)[:60]})")
    return "" if value is None or value != value else str(value)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A record's own keys, and those of its object `metadata` (BEIR's layout) that it lacks itself.

    >>> flat({"text": "A whale.", "metadata": {"year": 2020}})
    {'year': 2020, 'text': 'A whale.'}
    """
    rest = dict(row)
    nested = rest.pop("metadata") if isinstance(rest.get("metadata"), Mapping) else {}
    return {**nested, **rest}


def chosen(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Some keys of a record, None for those that it lacks."""
    there = flat(row)
    return {name: there.get(name) for name in names}


def _check_metadata(names: Iterable[str], there: Sequence[str], what: str) -> None:
    if missing := [name for name in names if name not in there]:
        raise DataError(f"no {what} {missing[0]!r} for the metadata; there are {listed(there)}")


def _joined(row: Mapping[str, Any]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in row.items() if value not in ("", None, [], {}))


def listed(names: Iterable[Any]) -> str:
    """The first few names, quoted."""
    names = list(names)
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "") if names else "(none)"
