"""Convert one file of any supported kind to documents: whole texts, rows of tables, records, pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from counterpoint.data.charsets import marked
from counterpoint.data.fields import Fields
from counterpoint.data.kinds import kind_of
from counterpoint.data.markup import PlainText, from_html, from_markdown, from_rst
from counterpoint.data.office import from_docx, from_notebook, pages_of
from counterpoint.data.packed import ending, plain_stem
from counterpoint.data.reader import Located, Reader, open_binary
from counterpoint.data.rows import row_documents
from counterpoint.errors import DataError
from counterpoint.types import Document

__all__ = ["extract"]

DECLARED = re.compile(
    rb"""<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE
)


def extract(path: Path, name: str, reader: Reader, fields: Fields | None = None) -> Iterator[Located]:
    """Yield the documents of one file, each with `metadata["file"]`. A file of unknown kind is read as text.

    `name` is the file's in ids and metadata: its path relative to the folder that is read.

    Raises:
        DataError: the file cannot be used.
        MissingExtraError: its kind needs a package that is not installed.
    """
    kind = kind_of(path) or "text"
    if kind == "rows":
        yield from _rows(path, name, reader, fields or Fields())
    elif kind == "pdf":
        yield from _pages(path, name, reader)
    else:
        yield _whole(path, name, _plain(path, kind, reader))
    reader.report.read(ending(path) or "no ending")


def _whole(path: Path, name: str, plain: PlainText) -> Located:
    metadata: dict[str, object] = {"file": name}
    if plain.headings:
        metadata["headings"] = [list(heading) for heading in plain.headings]
    return Located(Document(name, plain.text, plain.title or plain_stem(path), metadata=metadata), path)


def _rows(path: Path, name: str, reader: Reader, fields: Fields) -> Iterator[Located]:
    """Yield one document per row or record; its id is `<file>:<id>`, or `<file>:<line>` if it has none."""
    for row in row_documents(path, fields, reader):
        found = row.under(name)
        if row.named and found.id.strip():  # a blank id must be noticed, not hidden
            found = replace(found, id=f"{name}:{found.id}")
        yield Located(replace(found, metadata={**found.metadata, "file": name}), path, row.line)


def _pages(path: Path, name: str, reader: Reader) -> Iterator[Located]:
    """Yield one document per page; its id is `<file>:<page>`, with `metadata["page"]`, counted from 1."""
    for page, title, text in pages_of(path, reader):
        metadata = {"file": name, "page": page}
        yield Located(Document(f"{name}:{page}", text, title or path.stem, metadata=metadata), path, page)


def _plain(path: Path, kind: str, reader: Reader) -> PlainText:
    match kind:
        case "docx":
            return from_docx(path, reader)
        case "notebook":
            return _notebook(path, reader)
        case "html":
            return _parsed(path, from_html, reader.text(path, encoding=_declared_encoding(path)))
        case "markdown":
            return _parsed(path, from_markdown, reader.text(path))
        case "rst":
            return _parsed(path, from_rst, reader.text(path))
        case "code":
            return PlainText(reader.text(path), path.name)  # its ending says as much as the rest of the name
        case _:
            return PlainText(reader.text(path))


def _parsed(path: Path, parse: Callable[[str], PlainText], text: str) -> PlainText:
    try:
        return parse(text)
    except (AssertionError, RecursionError, ValueError) as error:  # errors of the libraries for broken markup
        raise DataError(f"its markup cannot be read ({error}); repair it", path=path) from error


def _notebook(path: Path, reader: Reader) -> PlainText:
    try:
        return from_notebook(path, reader)
    except (KeyError, TypeError, AssertionError, RecursionError) as error:
        raise DataError(f"this notebook cannot be read ({error!r}); save it again", path=path) from error


def _declared_encoding(path: Path) -> str | None:
    """The encoding that a page declares in its first kilobyte, if Python supports it.

    None if the page has a byte order mark, which takes precedence, or declares UTF-8, which is tried first
    anyway.
    """
    with open_binary(path) as file:
        beginning = file.read(1024)
    found = DECLARED.search(beginning)
    if found is None or marked(beginning) is not None:
        return None
    name = found[1].decode("ascii")
    if name.lower() in ("utf-8", "utf8"):
        return None
    try:
        b" ".decode(name, "replace")
    except (LookupError, UnicodeError):  # unknown, not a text encoding, or one that cannot replace
        return None
    return name
