"""Files with rows or records as documents: CSV, TSV, JSON and JSON Lines, with named or detected fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, final

from counterpoint.data.collection import Source
from counterpoint.data.delimited import rows_of, table_of
from counterpoint.data.fields import TEXTS, Columns, Fields, flat, listed
from counterpoint.data.json_file import json_rows
from counterpoint.data.packed import ending, plain_stem
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader
from counterpoint.data.records import Misfit, check_kept, described, document_from, layout_with, records
from counterpoint.errors import DataError
from counterpoint.types import Document

__all__ = ["JSON_LINES", "ROWS", "RowsFile", "row_documents"]

JSON_LINES = (".jsonl", ".ndjson")
ROWS = (".csv", ".tsv", ".json", *JSON_LINES)


class Row(NamedTuple):
    """A document in a file.

    Attributes:
        line: its line or number; None if the file is one document.
        document: as found.
        named: whether it has its own id; otherwise its id is empty.
    """

    line: int | None
    document: Document
    named: bool

    def under(self, label: str) -> Document:
        """The document with its own id, or with one made of the label and the line."""
        if self.named:
            return self.document
        return replace(self.document, id=label if self.line is None else f"{label}:{self.line}")


@final
@dataclass(frozen=True)
class RowsFile(Source):
    """One file of rows or records; each is a document with its own id, or `<file>:<line>` without one.

    Attributes:
        path: the file; its ending tells the format.
        fields: names of the fields.
        label: name in generated ids; the file's name if None.
    """

    path: Path
    fields: Fields = field(default_factory=Fields)
    label: str | None = None

    @property
    def name(self) -> str:
        """The file's name without its endings."""
        return self.label or plain_stem(self.path)

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield one document per row or record."""
        for row in self._rows(reader):
            yield Located(row.under(self.label or self.path.name), self.path, row.line)
        reader.report.read(ending(self.path))

    def decided(self, policy: ReadPolicy) -> tuple[str, ...]:
        """Decisions about the file, made from its first rows; a missing named field is an error."""
        reader = Reader(policy)
        next(self._rows(reader), None)
        return tuple(reader.report.decisions)

    def _rows(self, reader: Reader) -> Iterator[Row]:
        return row_documents(self.path, self.fields, reader, may_join=ending(self.path) in (".csv", ".tsv"))


def row_documents(path: Path, fields: Fields, reader: Reader, *, may_join: bool = True) -> Iterator[Row]:
    """Yield the documents of a file of rows or records; its ending tells the format.

    If no field is a text and `may_join` is true, all fields are joined to make one.

    Raises:
        DataError: the file cannot be read, or a row does not fit and the policy does not skip it.
    """
    kind = ending(path)
    if kind in (".csv", ".tsv"):
        table = table_of(path, fields, reader)
        if table.columns.names:
            reader.report.decide(f"{path}: {table}")
        rows, columns = rows_of(path, table, reader), table.columns
    else:
        rows = json_rows(path, fields, reader) if kind == ".json" else records(path, reader)
        columns = None
    layout, first = None, True
    for line, row in rows:
        if isinstance(row, str):
            yield Row(line, Document("", row, "" if line is not None else path.name), False)
            continue
        if first and columns is None:
            layout = None if fields.placed else layout_with(row)
            if layout is None:
                columns = _columns(path, fields, row, may_join, reader)
            else:
                check_kept(row, fields.metadata, path)
                reader.report.decide(f"{path}: {described(layout)}")
        first = False
        try:
            if layout is not None:
                yield Row(line, document_from(row, layout, fields.metadata), True)
            elif columns is not None:
                yield Row(line, columns.document(row, ""), columns.id is not None)
        except (Misfit, DataError) as error:
            reader.reject(str(error), path, line)


def _columns(
    path: Path, fields: Fields, row: Mapping[str, Any], may_join: bool, reader: Reader
) -> Columns | None:
    """Decide what each field holds, by the keys of the first record.

    Raises:
        DataError: a named field is missing, or there is no text field where one is needed.
    """
    try:
        columns = fields.resolve(list(row), "field", flat(row))
    except DataError as error:
        raise DataError(str(error), path=path) from error
    if columns.text is None and not may_join:
        raise DataError(
            f"no field is called {' or '.join(TEXTS[:4])}; there are {listed(row)}. "
            "Name the field of the text (--text, text=)",
            path=path,
        )
    reader.report.decide(f"{path}: fields {columns}")
    return columns
