"""Tables: aligned text for a terminal, and CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from counterpoint.escapes import escaped

__all__ = ["Cell", "csv_table", "text_table"]

Cell = str | int | float

FORMULA = ("=", "+", "-", "@")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def text_table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Align columns under their names: texts left, numbers right, floats with four digits."""
    head = [escaped(name) for name in header]
    shown = [
        [f"{cell:.4f}" if isinstance(cell, float) else escaped(str(cell)) for cell in row] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *shown, strict=True)]
    left = [all(isinstance(cell, str) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in [head, *shown]:
        cells = (
            cell.ljust(width) if is_left else cell.rjust(width)
            for cell, width, is_left in zip(row, widths, left, strict=True)
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def csv_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Write a table as CSV in UTF-8. Without a byte order mark, which would become part of the first name.

    A text becomes one line with control characters escaped. If it begins like a formula and is not a plain
    number, it gets an apostrophe in front, so that a spreadsheet runs nothing (OWASP, "CSV injection").

    Raises:
        ArtifactError: the file could not be written; an existing file is unchanged.
    """
    from counterpoint.files import write_atomically

    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    for row in [header, *rows]:
        table.writerow([_harmless(cell) if isinstance(cell, str) else cell for cell in row])
    data = text.getvalue().encode("utf-8")
    write_atomically(path, lambda target: target.write_bytes(data))


def _harmless(text: str) -> str:
    line = escaped(" ".join(text.split()))
    return f"'{line}" if line.startswith(FORMULA) and not NUMBER.fullmatch(line) else line
