"""Delimited tables: detect their delimiter and header, and read their rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from counterpoint.data.charsets import UTF_8
from counterpoint.data.fields import IDS, TEXTS, TITLES, Columns, Fields
from counterpoint.data.packed import ending
from counterpoint.data.reader import Reader
from counterpoint.errors import DataError

__all__ = ["Table", "has_header", "rows_of", "table_of"]

DELIMITERS = ",;\t|"
QUOTED = re.compile(r'"[^"]*"')
NUMBER = re.compile(r"[-+]?[\d.,:/-]*\d[\d.,:/%-]*")
SENTENCE = re.compile(r"\s.*[.!?]$", re.DOTALL)
WORD = re.compile(r"[A-Za-z_]+([ _-][A-Za-z_]+)?")
LONGEST_NAME = 60  # maximum length of a column name, in characters
LOOKED_AT = 50  # number of lines used to detect the delimiter
SNIFFED = 1 << 13  # number of characters used; the sniffer takes quadratic time
MOST = 2**31 - 1  # largest C long on all platforms
USUAL = frozenset((*IDS, *TITLES, *TEXTS))


class Table(NamedTuple):
    """Detected properties of a table.

    Attributes:
        delimiter: between columns.
        columns: what each column holds.
        header: whether the first row names the columns.
        encoding: of the file.
    """

    delimiter: str
    columns: Columns
    header: bool
    encoding: str

    def __str__(self) -> str:
        """Description for the user."""
        shown = "tab" if self.delimiter == "\t" else repr(self.delimiter)
        more = "" if self.header else ", no header"
        more += "" if self.encoding == UTF_8 else f", {self.encoding}"
        return f"columns {self.columns} (delimiter {shown}{more})"


def table_of(path: Path, fields: Fields, reader: Reader) -> Table:
    """Detect the properties of a table from its first lines.

    Raises:
        DataError: it cannot be read, two columns have the same name, or a named column is missing.
    """
    encoding = reader.charset(path, told=True)
    if not (lines := _first(path, reader, encoding)):
        return Table("\t" if ending(path) == ".tsv" else ",", Columns(()), False, encoding)
    delimiter = _delimiter(lines, ending(path))
    first = _first_row(lines, delimiter, path)
    header = _is_header(first, fields) is not False
    names = [name.strip() for name in first] if header else [""] * len(first)
    if not header and delimiter == "\t" and len(first) in (2, 3):
        names = ["id", "text", "title"][: len(first)]  # as in MS MARCO's files and ColBERT's
    names = [name or f"column {number}" for number, name in enumerate(names, 1)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"two columns are named {twice[0]!r}; rename one", path=path, line=1)
    try:
        columns = fields.resolve(names)
        fields.check_declared(names)
    except DataError as error:
        raise DataError(str(error), path=path, line=1) from error
    if columns.text is None and len(names) == 1:
        columns = replace(columns, text=names[0])
    return Table(delimiter, columns, header, encoding)


def has_header(path: Path, fields: Fields, reader: Reader) -> bool:
    """Whether the first line of a tab-separated collection is a header.

    By default it is not one, as in MS MARCO. It is one if a name is usual or was given, or if all cells are
    words and the sniffer finds a header.
    """
    lines = _first(path, reader, None)
    if not lines or "\t" not in lines[0]:
        return False
    row = lines[0].split("\t")
    found = _is_header(row, fields)
    if found is not None or not all(WORD.fullmatch(cell.strip()) for cell in row):
        return bool(found)
    try:
        return csv.Sniffer().has_header("\n".join(lines)[:SNIFFED])
    except (csv.Error, StopIteration):
        return False


def rows_of(path: Path, table: Table, reader: Reader) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells by column name of each row, without header and blank rows.

    Raises:
        DataError: a row does not fit, unless the policy skips it.
    """
    # By default, Python refuses longer cells. The limit holds for the whole process, so it is only ever
    # raised.
    csv.field_size_limit(max(csv.field_size_limit(), min(reader.policy.max_characters, MOST)))
    lines = (line + "\n" for _, line in reader.lines(path, table.encoding))
    rows, names = _parser(lines, table.delimiter), table.columns.names
    waiting = table.header
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            reader.reject(f"not a valid table: {error}", path, line)
            continue
        if not any(row):
            continue
        if waiting:
            waiting = False
        elif len(row) != len(names):
            there = "the header names" if table.header else "the first row has"
            reader.reject(f"{there} {len(names)} columns, this row has {len(row)}", path, line)
        else:
            yield line, dict(zip(names, row, strict=True))


def _parser(lines, delimiter: str):
    return csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=delimiter != "\t")


def _first(path: Path, reader: Reader, encoding: str | None) -> list[str]:
    """The first lines that are not blank; without a known encoding, invalid UTF-8 is replaced."""
    if encoding is None:
        reader = Reader(replace(reader.policy, encoding="replace"))
    found = (line for _, line in reader.lines(path, encoding) if line and not line.isspace())
    return list(islice(found, LOOKED_AT))


def _delimiter(lines: Sequence[str], kind: str) -> str:
    usual = "\t" if kind == ".tsv" else ","
    bare = QUOTED.sub("", lines[0][:SNIFFED])
    there = [mark for mark in DELIMITERS if mark in bare]
    if len(there) < 2 or (kind == ".tsv" and "\t" in there):
        return "\t" if "\t" in there else there[0] if there else usual
    try:
        return csv.Sniffer().sniff("\n".join(lines)[:SNIFFED], "".join(there)).delimiter
    except csv.Error:
        return usual if usual in there else there[0]


def _first_row(lines: Sequence[str], delimiter: str, path: Path) -> list[str]:
    try:
        return next(_parser((line + "\n" for line in lines), delimiter), [])
    except csv.Error as error:
        raise DataError(f"not a valid table: {error}", path=path, line=1) from error


def _is_header(row: Sequence[str], fields: Fields) -> bool | None:
    """Whether a first row is a header; None if unsure.

    A row with a number in front, a sentence or a long cell looks like data and is not a header.
    """
    cells = [cell.strip() for cell in row]
    if any(name in cells for name in fields.named):
        return True
    if NUMBER.fullmatch(cells[0]) or any(len(c) > LONGEST_NAME or SENTENCE.search(c) for c in cells):
        return False
    return True if any(cell.casefold() in USUAL for cell in cells) else None
