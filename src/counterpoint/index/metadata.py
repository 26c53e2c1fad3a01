"""Typed metadata fields, which conditions can test.

A declared field (`--metadata year:int,lang`) is a column of the documents' database with a database index,
and its values have the declared type. Other fields are read from the metadata, which takes a pass over all
documents.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import cast, get_args

from counterpoint.errors import ConfigError, DataError
from counterpoint.index.where import FieldType, Tested
from counterpoint.types import Document

__all__ = ["MOST", "column_of", "named_fields", "remedy_of", "sql_types", "test_of", "typed", "types_of"]

SQL: Mapping[FieldType, str] = MappingProxyType(
    {"int": "INTEGER", "float": "REAL", "str": "TEXT", "bool": "INTEGER"}
)
SEEN = MappingProxyType(
    {
        "integer": "int",
        "real": "float",
        "text": "str",
        "true": "bool",
        "false": "bool",
        "array": "list",
        "object": "object",
    }
)
"""The type of a JSON value, by SQLite's name of it."""
NO_TYPE = 'conditions cannot test objects; give each value a field of its own, such as "tag_reef": true'
TRUTH: Mapping[str, bool] = MappingProxyType({"true": True, "false": False, "1": True, "0": False})
MOST = 64  # declared fields, each of which is a column


def named_fields(entries: Iterable[str]) -> dict[str, FieldType | None]:
    """Parse field declarations, `year:int,lang` or several entries; None for a field without a type.

    Raises:
        ConfigError: a name is missing or repeated, a type is unknown, or too many fields have a type.
    """
    found: dict[str, FieldType | None] = {}
    for piece in (piece for entry in entries for piece in entry.split(",")):
        name, colon, kind = piece.strip().partition(":")
        name, kind = name.strip(), kind.strip()
        if not name:
            raise ConfigError("metadata: a field has no name; write for example year:int,lang")
        if name in found:
            raise ConfigError(f"metadata: the field {name!r} is given twice")
        if colon and kind not in get_args(FieldType):
            known = ", ".join(get_args(FieldType))
            raise ConfigError(f"metadata: {name!r} has the unknown type {kind!r}; choose from {known}")
        found[name] = cast(FieldType, kind) if colon else None
    if sum(kind is not None for kind in found.values()) > MOST:
        raise ConfigError(f"metadata: more than {MOST} fields have a type")
    return found


def typed(document: Document, fields: Mapping[str, FieldType]) -> Document:
    """The document with its declared fields converted to their types.

    An empty string becomes None where the type is not `str`. For `str`, numbers, true and false become their
    text in JSON.

    Raises:
        DataError: a value does not fit its type; the message names the document and the field.
    """
    named = {name: document.metadata[name] for name in fields if document.metadata.get(name) is not None}
    if not named:
        return document
    values = {name: _typed(value, fields[name]) for name, value in named.items()}
    for name, value in values.items():
        if value is None and named[name] != "":
            raise DataError(
                f"document {document.id!r}: its metadata field {name!r} is {named[name]!r}, which is not of "
                f"type {fields[name]}; {_remedy(named[name])}"
            )
    return replace(document, metadata={**document.metadata, **values})


def _remedy(value: object) -> str:
    """What to do about a value that does not fit its field's type."""
    if isinstance(value, list | tuple):
        return "declare no type for a field of lists; conditions test it without one: 'reef' in tags"
    return NO_TYPE if isinstance(value, Mapping) else "correct it, or declare another type"


def _typed(value: object, kind: FieldType) -> str | int | float | bool | None:
    """A value converted to a type; None if that is impossible."""
    if kind == "str":
        if isinstance(value, int | float):  # bool, too
            return json.dumps(value)
        return value if isinstance(value, str) else None
    if kind == "bool":
        return value if isinstance(value, bool) else TRUTH.get(str(value).strip().lower())
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
        if kind == "float":
            return number if math.isfinite(number) else None
        whole = int(value)
    except (ValueError, OverflowError):
        return None
    return whole if abs(whole) < 2**63 and (isinstance(value, str) or whole == value) else None


def sql_types(fields: Mapping[str, FieldType]) -> dict[str, str]:
    """For each declared field, its column and SQL type."""
    return {column_of(name): SQL[kind] for name, kind in fields.items()}


def column_of(name: str) -> str:
    """The column of a declared field, in SQL."""
    return _quoted(f"metadata.{name}", '"')


def test_of(name: str) -> str:
    """The SQL expression of an undeclared field."""
    return f"(SELECT value FROM json_each(metadata) WHERE key = {_quoted(name, chr(39))})"


def types_of(seen: Iterable[tuple[str, str]]) -> tuple[dict[str, Tested], dict[str, str]]:
    """The types of fields by pairs of field and SQLite's type of a value; for others, the types found."""
    kinds: dict[str, set[str]] = {}
    for name, kind in seen:
        if kind != "null":
            kinds.setdefault(name, set()).add(SEEN[kind])
    types: dict[str, Tested] = {}
    others: dict[str, str] = {}
    for name, found in kinds.items():
        if len(found) == 1 and (kind := next(iter(found))) != "object":
            types[name] = cast(Tested, kind)
        elif found == {"int", "float"}:
            types[name] = "float"
        else:
            others[name] = " and ".join(sorted(found))
    return types, others


def remedy_of(name: str, found: str) -> str:
    """What to do about a field without a single type; `found` has its types, as `types_of` gives them."""
    kinds = found.split(" and ")
    if "object" in kinds:
        return NO_TYPE
    if "list" in kinds:
        return "conditions can test it once it is a list in all of them; make a single value a list of one"
    return f"build the index with a type for it (--metadata {name}:str), so that conditions can test it"


def _quoted(name: str, mark: str) -> str:
    return mark + name.replace(mark, 2 * mark) + mark
