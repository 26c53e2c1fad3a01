"""Read a `.json` file: rows if it has one of the usual shapes, else one document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from counterpoint.data.fields import Fields, flat
from counterpoint.data.reader import Reader
from counterpoint.data.records import DECODER, DEEPEST, is_deep, records
from counterpoint.errors import DataError

__all__ = ["json_rows", "json_value"]

TIMES = 10  # a `.json` file is read whole; it may be this many times as long as the longest text
RECORD = ("text", "contents", "content", "body")  # keys that make a single object a document


def json_rows(path: Path, fields: Fields, reader: Reader) -> Iterator[tuple[int | None, Any]]:
    """Yield number (from 1) and value, an object or a string, of each row; or None and the text of the file.

    Rows are one of these: the items of a list of objects and strings; those of such a list in an object
    (`{"documents": [...]}`); the rows of an object of columns (`{"id": [...], "text": [...]}`); the members
    of an object of objects, with their keys as ids; one object with a text. JSON Lines are read as such.
    Anything else, such as a settings file, is one document with the file's own text.

    Raises:
        DataError: it is not JSON, or too long to be read whole.
    """
    text = reader.text(path, most=TIMES * reader.policy.max_characters)
    try:
        value = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        if _is_lines(text):
            reader.report.decide(f"{path}: read as JSON Lines")
            yield from records(path, reader)
            return
        raise DataError(f"not valid JSON: {error}", path=path) from error
    if is_deep(text, value):
        raise DataError(f"nested more than {DEEPEST} levels deep; flatten it", path=path)
    if (rows := _rows(value, fields)) is None:
        yield None, reader.fit(text, path)
        return
    for number, row in enumerate(rows, 1):
        if isinstance(row, str | dict):
            yield number, row
        else:
            reader.reject(f"item {number}: expected an object or a string, found {type(row).__name__}", path)


def json_value(path: Path, reader: Reader) -> Any:
    """Read the value in a file.

    Raises:
        DataError: it is not JSON, or too long to be read whole.
    """
    try:
        return DECODER.decode(reader.text(path, most=TIMES * reader.policy.max_characters))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"not valid JSON: {error}", path=path) from error


def _rows(value: Any, fields: Fields) -> list[Any] | None:
    """The rows in a value of one of the usual shapes; None for other shapes."""
    if isinstance(value, list):
        return value if all(isinstance(item, dict | str) for item in value[:1]) else None
    if not isinstance(value, dict) or not value:
        return None
    members = list(value.values())
    lists = [member for member in members if _is_rows(member, fields)]
    if len(lists) == 1:
        return lists[0]
    if all(isinstance(member, list) and len(member) == len(members[0]) for member in members):
        rows = [dict(zip(value, row, strict=True)) for row in zip(*members, strict=True)]
        return rows if _is_rows(rows, fields) else None
    if _is_rows(members, fields) and all(isinstance(member, dict) for member in members):
        named = fields.resolve(list(members[0]), inside=flat(members[0])).id
        return members if named else [{"id": key, **member} for key, member in value.items()]
    alone = fields.text in value if fields.text else any(isinstance(value.get(key), str) for key in RECORD)
    return [value] if alone else None


def _is_rows(member: Any, fields: Fields) -> bool:
    if not isinstance(member, list) or not member or not isinstance(member[0], Mapping):
        return False
    if fields.text is not None:
        return fields.text in member[0]
    return Fields().resolve(list(member[0])).text is not None


def _is_lines(text: str) -> bool:
    line = next((line for line in text.splitlines() if line.strip()), "")
    try:
        return isinstance(DECODER.decode(line), dict)
    except (ValueError, RecursionError):
        return False
