"""One file of any readable kind to documents: whole texts, rows of tables, records, pages."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from counterpoint.data.markup import PlainText, from_html, from_markdown, from_rst
from counterpoint.data.reader import Located, Reader, open_binary
from counterpoint.data.records import Misfit, document_from, layout_with, records
from counterpoint.errors import DataError, MissingExtraError
from counterpoint.types import Document

__all__ = ["can_extract", "extract"]

DECLARED = re.compile(
    rb"""<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE
)

Extractor = Callable[[Path, str, Reader], Iterator[Located]]


def can_extract(path: Path) -> bool:
    """Whether a file's ending is one that `extract` reads."""
    return path.suffix.lower() in EXTRACTORS


def extract(path: Path, name: str, reader: Reader) -> Iterator[Located]:
    """The documents of one file, each with `metadata["file"]`.

    Args:
        path: the file.
        name: what it is called in ids, messages and metadata: its path below the folder being read.
        reader: the policy and the report.

    Raises:
        DataError: the file cannot be used; if the policy skips what is malformed, a damaged table, record or
            PDF file is counted instead.
        MissingExtraError: a PDF file, and `pypdf` is not installed.
    """
    yield from EXTRACTORS[path.suffix.lower()](path, name, reader)
    reader.report.files += 1


def _text(path: Path, name: str, reader: Reader) -> Iterator[Located]:
    return _whole(path, name, PlainText(reader.text(path)))


def _markdown(path: Path, name: str, reader: Reader) -> Iterator[Located]:
    return _marked_up(path, name, reader, from_markdown, reader.text(path))


def _rst(path: Path, name: str, reader: Reader) -> Iterator[Located]:
    return _marked_up(path, name, reader, from_rst, reader.text(path))


def _html(path: Path, name: str, reader: Reader) -> Iterator[Located]:
    return _marked_up(path, name, reader, from_html, reader.text(path, encoding=_declared_encoding(path)))


def _marked_up(
    path: Path, name: str, reader: Reader, parse: Callable[[str], PlainText], text: str
) -> Iterator[Located]:
    try:
        plain = parse(text)
    except (AssertionError, RecursionError, ValueError) as error:  # the libraries', of markup that is broken
        reader.reject(f"its markup cannot be read ({error}); repair it", path)
        return
    yield from _whole(path, name, plain)


def _whole(path: Path, name: str, plain: PlainText) -> Iterator[Located]:
    metadata: dict[str, object] = {"file": name}
    if plain.headings:
        metadata["headings"] = [list(heading) for heading in plain.headings]
    yield Located(Document(name, plain.text, plain.title or path.stem, metadata=metadata), path)


def _declared_encoding(path: Path) -> str | None:
    """The encoding that a page names in its first kilobyte, if Python knows it."""
    with open_binary(path) as file:
        found = DECLARED.search(file.read(1024))
    if found is None:
        return None
    name = found[1].decode("ascii")
    try:
        b" ".decode(name, "replace")
    except (LookupError, UnicodeError):  # unknown, no encoding of text, or one that cannot replace
        return None
    return name


def _table(path: Path, name: str, reader: Reader) -> Iterator[Located]:
    """One document a row, with the id `<file>:<line>`; the first row names the columns."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    lines = (line + "\n" for _, line in reader.lines(path))
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    columns: list[str] = []
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
        if not columns:
            columns = _column_names(row, path, line)
        elif len(row) != len(columns):
            reader.reject(f"the header names {len(columns)} columns, this row has {len(row)}", path, line)
        else:
            yield Located(_from_fields(dict(zip(columns, row, strict=True)), name, line), path, line)


def _column_names(header: list[str], path: Path, line: int) -> list[str]:
    names = [name.strip() or f"column {number}" for number, name in enumerate(header, 1)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"two columns are named {twice[0]!r}; rename one", path=path, line=line)
    return names


def _records(path: Path, name: str, reader: Reader) -> Iterator[Located]:
    """One document a record, with the id `<file>:<id>`, or `<file>:<line>` in a layout of the user's own."""
    layout = None
    for number, (line, record) in enumerate(records(path, reader)):
        if number == 0:
            layout = layout_with(record)
        if layout is None:
            yield Located(_from_fields(record, name, line), path, line)
            continue
        try:
            found = document_from(record, layout)
        except Misfit as error:
            reader.reject(str(error), path, line)
            continue
        metadata = {**found.metadata, "file": name}
        id_ = f"{name}:{found.id}" if found.id.strip() else ""  # a blank id is to be noticed, not hidden
        yield Located(Document(id_, found.text, found.title, metadata=metadata), path, line)


def _from_fields(fields: Mapping[str, object], name: str, line: int) -> Document:
    """A row or record without a known layout: its text is a `name: value` line for each field in use."""
    text = "\n".join(f"{key}: {value}" for key, value in fields.items() if value not in ("", None, [], {}))
    title = next((str(value) for key, value in fields.items() if key.lower() in ("title", "name")), "")
    return Document(f"{name}:{line}", text, title, metadata={**fields, "file": name})


def _pdf(path: Path, name: str, reader: Reader) -> Iterator[Located]:
    """One document a page, with the id `<file>:<page>` and `metadata["page"]`, counted from 1."""
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise MissingExtraError(f"reading {path}", package="pypdf", extra="pdf") from error
    page = 0
    try:
        pdf = PdfReader(path)
        title = str(pdf.metadata.title or "") if pdf.metadata else ""
        for page, content in enumerate(pdf.pages, 1):
            text = reader.fit(content.extract_text(), path)
            yield Located(
                Document(f"{name}:{page}", text, title or path.stem, metadata={"file": name, "page": page}),
                path,
                page,
            )
    except DataError:
        raise
    except Exception as error:  # a damaged file makes pypdf fail in any way: KeyError, RecursionError, …
        where = f"after page {page}" if page else "at its beginning"
        reader.reject(f"this PDF cannot be read {where} ({type(error).__name__}: {error}); repair it", path)


EXTRACTORS: Mapping[str, Extractor] = MappingProxyType(
    {
        ".txt": _text,
        ".md": _markdown,
        ".markdown": _markdown,
        ".rst": _rst,
        ".html": _html,
        ".htm": _html,
        ".csv": _table,
        ".tsv": _table,
        ".jsonl": _records,
        ".pdf": _pdf,
    }
)
