"""JSON lines in the layouts of common retrieval toolkits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn, cast

from counterpoint.data.collection import Source
from counterpoint.data.fields import Fields as OwnFields
from counterpoint.data.fields import chosen, flat, listed
from counterpoint.data.packed import ending
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader, strict_reader
from counterpoint.errors import DataError
from counterpoint.types import Document

__all__ = [
    "DECODER",
    "DEEPEST",
    "Misfit",
    "RecordLayout",
    "RecordsFile",
    "check_kept",
    "described",
    "document_from",
    "is_deep",
    "layout_of",
    "layout_with",
    "read_json_queries",
    "records",
]

RecordLayout = Literal["beir-jsonl", "pyserini", "tevatron", "plain"]


class Fields(NamedTuple):
    """Keys of one layout: of the id, and possible keys of the text."""

    id: str
    text: tuple[str, ...]


LAYOUTS: Mapping[RecordLayout, Fields] = MappingProxyType(
    {
        "beir-jsonl": Fields("_id", ("text",)),
        "tevatron": Fields("docid", ("text", "document_text")),
        "pyserini": Fields("id", ("contents",)),
        "plain": Fields("id", ("text",)),
    }
)

# Maximum nesting of a record. Python reads and writes about 900 levels, fewer in deep call stacks.
DEEPEST = 100
QUERY_FIELDS = (("_id", "text"), ("query_id", "query_text"), ("query_id", "query"), ("id", "text"))


class Misfit(ValueError):
    """A record does not fit its layout; becomes a `DataError`, or is counted as skipped."""


@dataclass(frozen=True)
class RecordsFile(Source):
    """One JSON lines file in one layout."""

    path: Path
    layout: RecordLayout
    kept: tuple[str, ...] | None = None  # metadata; all if None

    @property
    def name(self) -> str:
        """The file's name without its endings."""
        return self.path.name.split(".")[0]

    def decided(self, policy: ReadPolicy) -> tuple[str, ...]:
        """The layout; the first record must have the metadata to keep."""
        if self.kept and (first := next(records(self.path, Reader(policy)), None)):
            check_kept(first[1], self.kept, self.path)
        return (f"{self.path}: {described(self.layout)}",)

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield one document per record."""
        reader.report.decide(*self.decided(reader.policy))
        for line, record in records(self.path, reader):
            try:
                yield Located(document_from(record, self.layout, self.kept), self.path, line)
            except Misfit as error:
                reader.reject(str(error), self.path, line)
        reader.report.read(ending(self.path))


def records(path: Path, reader: Reader) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and object of each line that is not blank.

    Raises:
        DataError: a line is not a JSON object, unless the policy skips it.
    """
    for number, line in reader.lines(path):
        if not line or line.isspace():
            continue
        try:
            record = DECODER.decode(line)
        except (ValueError, RecursionError) as error:
            reader.reject(f"not valid JSON: {error}; each line must be one object", path, number)
            continue
        if is_deep(line, record):
            reader.reject(f"nested more than {DEEPEST} levels deep; flatten it", path, number)
        elif isinstance(record, dict):
            yield number, record
        else:
            reader.reject(f"expected a JSON object, found {type(record).__name__}", path, number)


def is_deep(line: str, record: object) -> bool:
    """Whether a record is nested too deeply to be written and read again."""
    if line.count("[") + line.count("{") <= DEEPEST:
        return False
    level: list[Any] = [record]
    for _ in range(DEEPEST):
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
        ]
    return any(isinstance(value, dict | list) for value in level)


def layout_of(path: Path, policy: ReadPolicy) -> RecordLayout | Literal["rows"]:
    """Detect the layout of a file from the keys of its first record; an empty file has BEIR's.

    If the keys fit no layout, but one is a usual name of a text, the layout is `rows`. If the policy skips
    malformed lines, the first record with known keys decides.

    Raises:
        DataError: the keys fit no layout, and none is a usual name of a text.
    """
    reader = Reader(policy)
    for line, record in records(path, reader):
        if (layout := layout_with(record)) is not None:
            return layout
        if OwnFields().resolve(list(record)).text is not None:
            return "rows"
        known = (f"{name}: {fields.id} and {' or '.join(fields.text)}" for name, fields in LAYOUTS.items())
        fault = f"the keys {listed(record)} fit no known layout ({'; '.join(known)}); "
        reader.reject(fault + "name the key of the text (--text, text=)", path, line)
    return "beir-jsonl"


def layout_with(record: Mapping[str, Any]) -> RecordLayout | None:
    """The layout that has this record's keys; None if there is none."""
    for layout, fields in LAYOUTS.items():
        if fields.id in record and any(key in record for key in fields.text):
            return layout
    return None


def described(layout: RecordLayout) -> str:
    """The layout with its keys, as a decision.

    >>> described("tevatron")
    "layout tevatron: id 'docid', text 'text' or 'document_text', title 'title'"
    """
    fields = LAYOUTS[layout]
    return f"layout {layout}: id {fields.id!r}, text {' or '.join(map(repr, fields.text))}, title 'title'"


def document_from(
    record: Mapping[str, Any], layout: RecordLayout, kept: tuple[str, ...] | None = None
) -> Document:
    """Convert a record to a document; its metadata are `kept`, or keys without a meaning in the layout.

    Raises:
        Misfit: a key is absent or its value has the wrong type.
    """
    fields, rest = LAYOUTS[layout], dict(record)
    id_ = string_id(rest, fields.id)
    title = _text(rest, "title") if "title" in rest else ""
    if (key := next((key for key in fields.text if key in rest), None)) is None:
        wanted = " or ".join(map(repr, fields.text))
        raise Misfit(f"no {wanted} among the keys {listed(record)}, but the layout {layout!r} needs one")
    text = _text(rest, key)
    parent, start = None, 0
    if isinstance(rest.get("parent"), str) and type(rest.get("start")) is int:  # written by `write_beir`
        parent, start = cast(str, rest.pop("parent")), cast(int, rest.pop("start"))
        if not 0 <= start < 2**63:
            raise Misfit(f"'start' must be from 0 to 2**63 - 1, found {str(start)[:60]}")
    metadata = flat(rest) if kept is None else chosen(record, kept)
    return Document(id_, text, title, parent, start, metadata)


def check_kept(record: Mapping[str, Any], kept: tuple[str, ...] | None, path: Path) -> None:
    """Refuse metadata to keep that the first record does not have.

    Raises:
        DataError: names the field and those that there are.
    """
    try:
        OwnFields(metadata=kept).resolve(list(record), "field", flat(record))
    except DataError as error:
        raise DataError(str(error), path=path) from error


def string_id(record: dict[str, Any], key: str) -> str:
    """Take the id out of a record; whole numbers become strings.

    Raises:
        Misfit: it is absent, or neither a string nor a whole number.
    """
    if key not in record:
        raise Misfit(f"no id: {key!r} is not among the keys {listed(record)}")
    value = record.pop(key)
    if type(value) is int:  # not bool, which is a subclass of int
        return str(value)
    if not isinstance(value, str):
        raise Misfit(f"the id {key!r} must be a string or a whole number, found {json.dumps(value)[:60]}")
    return value


def read_json_queries(path: Path, policy: ReadPolicy) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """Yield line, id, text and metadata of each query; the first record decides on BEIR's or Tevatron's keys.

    Raises:
        DataError: a line does not fit.
    """
    keys = None
    for line, record in records(path, strict_reader(policy)):
        keys = keys or next((pair for pair in QUERY_FIELDS if set(pair) <= set(record)), None)
        if keys is None:
            known = " or ".join(f"{id_} and {text}" for id_, text in QUERY_FIELDS)
            raise DataError(f"a query needs {known}, found {listed(record)}", path=path, line=line)
        try:
            yield line, string_id(record, keys[0]), _text(record, keys[1]), flat(record)
        except Misfit as error:
            raise DataError(str(error), path=path, line=line) from error


def _text(record: dict[str, Any], key: str) -> str:
    value = record.pop(key, "")
    if value is None:  # some exporters write null for an empty text
        return ""
    if not isinstance(value, str):
        raise Misfit(f"{key!r} must be a string, found {json.dumps(value)[:60]}")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    if not isfinite(value := float(text)):
        raise ValueError(f"{text[:20]} is not a finite number; the largest is about 1.8e308")
    return value


DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
