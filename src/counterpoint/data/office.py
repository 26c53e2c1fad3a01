"""Read files of office programs: PDF, Word's `.docx`, and notebooks."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterpoint.data.json_file import json_value
from counterpoint.data.markup import PlainText, from_markdown
from counterpoint.data.reader import Reader
from counterpoint.errors import DataError, MissingExtraError

__all__ = ["from_docx", "from_notebook", "pages_of"]

PER_CHARACTER = 6  # maximum number of XML bytes per character of a `.docx`, markup included
GAP = "\n\n"


def pages_of(path: Path, reader: Reader) -> Iterator[tuple[int, str, str]]:
    """Yield page number (from 1), title of the file and text of each page of a PDF.

    Raises:
        DataError: the file is damaged.
        MissingExtraError: `pypdf` is not installed.
    """
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise MissingExtraError(f"reading {path}", package="pypdf", extra="pdf") from error
    page = 0
    try:
        pdf = PdfReader(path)
        title = str(pdf.metadata.title or "") if pdf.metadata else ""
        for page, content in enumerate(pdf.pages, 1):
            yield page, title, reader.fit(content.extract_text(), path)
    except DataError:
        raise
    except Exception as error:  # pypdf fails in many ways on a damaged file: KeyError, RecursionError, …
        where = f"after page {page}" if page else "at its beginning"
        raise DataError(
            f"this PDF cannot be read {where} ({type(error).__name__}: {error}); repair it", path=path
        ) from error


def from_docx(path: Path, reader: Reader) -> PlainText:
    """Read the paragraphs and tables of a Word document, in order; heading styles make headings.

    Raises:
        DataError: it is not such a file, or unpacks to more than a document may hold.
        MissingExtraError: `python-docx` is not installed.
    """
    try:
        import docx
    except ImportError as error:
        raise MissingExtraError(f"reading {path}", package="python-docx", extra="docx") from error
    _check_size(path, PER_CHARACTER * reader.policy.max_characters + (1 << 20))
    try:
        found = docx.Document(str(path))
        blocks = [(_is_heading(block), _block_text(block)) for block in found.iter_inner_content()]
        plain = _joined([PlainText(text, "", [(0, text)] if heading else ()) for heading, text in blocks])
        plain = plain._replace(title=str(found.core_properties.title or "") or plain.title)
    except Exception as error:  # it fails in many ways on a damaged file: KeyError, XMLSyntaxError, …
        raise DataError(
            f"this .docx cannot be read ({type(error).__name__}: {error}); repair it", path=path
        ) from error
    return plain._replace(text=reader.fit(plain.text, path))


def _check_size(path: Path, most: int) -> None:
    """Refuse a file that would unpack to too much: a few kilobytes can hold gigabytes.

    Raises:
        DataError: it would, or it is not a zip file. (Unpacking never exceeds the declared sizes.)
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {part.filename: part.file_size for part in archive.infolist()}
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError) as error:
        raise DataError(f"this is not a .docx file ({error}); save it as one", path=path) from error
    text = sum(size for name, size in sizes.items() if name.endswith((".xml", ".rels")))
    total = sum(sizes.values())
    if text > most or total > 20 * most:
        raise DataError(
            f"unpacks to {total:,} bytes, more than {most:,} of text; check that this is the right kind of "
            "file",
            path=path,
        )


def _is_heading(block: Any) -> bool:
    name = getattr(getattr(block, "style", None), "name", None) or ""
    return hasattr(block, "text") and name.startswith(("Heading", "Title"))


def _block_text(block: Any) -> str:
    if hasattr(block, "text"):
        return block.text.strip()
    rows = []
    for row in block.rows:
        cells: list[str] = []
        for cell in row.cells:  # a merged cell is listed once for each column that it spans
            text = " ".join(cell.text.split())
            if not cells or cells[-1] != text:
                cells.append(text)
        rows.append(" | ".join(cells))
    return "\n".join(rows)


def from_notebook(path: Path, reader: Reader) -> PlainText:
    """Read the texts and the code of a Jupyter notebook, cell after cell, without output.

    Raises:
        DataError: it is not a notebook.
    """
    found = json_value(path, reader)
    cells = found.get("cells") if isinstance(found, dict) else None
    if cells is None and isinstance(found, dict) and isinstance(found.get("worksheets"), list):  # version 3
        cells = [cell for sheet in found["worksheets"] if isinstance(sheet, dict) for cell in sheet["cells"]]
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise DataError("this is not a notebook: it has no list of cells; save it with Jupyter", path=path)
    parts: list[PlainText] = []
    for cell in cells:
        source = cell.get("source", cell.get("input", ""))
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        if cell.get("cell_type") == "markdown":
            parts.append(from_markdown(text))
        elif cell.get("cell_type") in ("code", "raw", "heading"):
            parts.append(PlainText(text.strip("\n")))
    plain = _joined(parts)
    return plain._replace(text=reader.fit(plain.text, path))


def _joined(parts: list[PlainText]) -> PlainText:
    """Join texts with blank lines; the first heading is the title."""
    pieces, headings, at = [], [], 0
    for part in parts:
        if part.text:
            headings += [(at + place, words) for place, words in part.headings]
            pieces.append(part.text)
            at += len(part.text) + len(GAP)
    return PlainText(GAP.join(pieces), headings[0][1] if headings else "", headings)
