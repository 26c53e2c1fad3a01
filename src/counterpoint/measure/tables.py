"""Tables of results as plain text, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from counterpoint.escapes import escaped

__all__ = ["Cell", "Table", "as_latex", "as_markdown", "as_text"]

LATEX = MappingProxyType(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
        "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "−": "$-$", "α": r"$\alpha$", "τ²": r"$\tau^2$", "χ²": r"$\chi^2$",
        "I²": "$I^2$", "–": "--", "∩": r"$\cap$", "∪": r"$\cup$", "|": r"\textbar{}", "†": r"$\dagger$",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A cell: its text, superscript letters, and whether it is the best of its column."""

    text: str
    raised: str = ""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A table: the first column holds names, the others numbers.

    Attributes:
        title: of the table.
        header: one name per column.
        rows: cells, or plain texts.
        notes: sentences below it.
    """

    title: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[Cell | str]]
    notes: tuple[str, ...] = ()

    def cells(self) -> list[list[Cell]]:
        """The rows, with every plain text converted to a cell."""
        return [[Cell(cell) if isinstance(cell, str) else cell for cell in row] for row in self.rows]


def as_text(table: Table) -> str:
    """Format for a terminal: aligned columns, with superscript letters after the numbers."""
    table, columns = _on_lines(table), []
    for at, name in enumerate(table.header):
        cells = [row[at] for row in table.cells()]
        raised = max((len(cell.raised) for cell in cells), default=0)
        gap = " " if raised else ""
        column = [f"{cell.text}{gap}{cell.raised:{raised}}" for cell in cells]
        width = max(map(len, [name, *column]))
        columns.append([f"{text:{width}}" if at == 0 else f"{text:>{width}}" for text in [name, *column]])
    lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    return "\n".join([table.title, "", *(f"  {line}" for line in lines), *_with_gap(table.notes, "  ")])


def as_markdown(table: Table) -> str:
    """Format as Markdown: the best of a column bold, letters as superscripts."""

    def shown(cell: Cell) -> str:
        text = re.sub(r"([\\|*_`<>\[\]])", r"\\\1", cell.text)
        text = f"**{text}**" if cell.best else text
        return f"{text}<sup>{cell.raised}</sup>" if cell.raised else text

    table = _on_lines(table)
    rows = [[shown(cell) for cell in row] for row in [[Cell(name) for name in table.header], *table.cells()]]
    ruler = ["---", *["---:"] * (len(table.header) - 1)]
    lines = [f"| {' | '.join(row)} |" for row in [rows[0], ruler, *rows[1:]]]
    return "\n".join([f"**{table.title}**", "", *lines, *_with_gap(table.notes, "")])


def as_latex(table: Table) -> str:
    r"""Format as a LaTeX `table` for booktabs: the best of a column bold, letters as superscripts."""

    def shown(cell: Cell) -> str:
        text = _escaped(cell.text)
        text = rf"\textbf{{{text}}}" if cell.best else text
        return f"{text}$^{{{cell.raised}}}$" if cell.raised else text

    table = _on_lines(table)
    rows = [" & ".join(map(shown, row)) + r" \\" for row in table.cells()]
    caption = " ".join([f"{table.title}.", *table.notes])
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_escaped(caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            " & ".join(map(_escaped, table.header)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _on_lines(table: Table) -> Table:
    """Escape all texts, because names of systems and queries come from files."""
    rows = [[replace(cell, text=escaped(cell.text)) for cell in row] for row in table.cells()]
    header, notes = (tuple(map(escaped, texts)) for texts in (table.header, table.notes))
    return Table(escaped(table.title), header, rows, notes)


def _with_gap(notes: Sequence[str], indent: str) -> list[str]:
    return ["", *(indent + note for note in notes)] if notes else []


def _escaped(text: str) -> str:
    special = "|".join(re.escape(sign) for sign in sorted(LATEX, key=len, reverse=True))
    return re.sub(special, lambda found: LATEX[found[0]], text)
