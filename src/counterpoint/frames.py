"""Results as tables of other tools: pandas frames, and the tables that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from counterpoint.errors import MissingExtraError
from counterpoint.escapes import html_text

if TYPE_CHECKING:
    import pandas

__all__ = ["frame", "html_table"]


def frame(columns: Mapping[str, Sequence[Any]], index: list[str] | None = None) -> pandas.DataFrame:
    """A pandas frame of columns, its rows numbered or named by `index`.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("a frame", package="pandas", extra="pandas") from error
    return pandas.DataFrame(dict(columns), index=index)


def html_table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], notes: Sequence[str] = ()
) -> str:
    """A table for a notebook, in its own colours: numbers right-aligned with four digits, text escaped."""
    lines = ["<table>", f'<caption style="text-align:left">{html_text(caption)}</caption>', "<thead><tr>"]
    lines += [f'<th style="text-align:left">{html_text(name)}</th>' for name in header]
    lines.append("</tr></thead><tbody>")
    for row in rows:
        lines.append("<tr>" + "".join(map(_cell, row)) + "</tr>")
    lines.append("</tbody></table>")
    return "\n".join([*lines, *(f"<p><small>{html_text(note)}</small></p>" for note in notes)])


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f'<td style="text-align:left">{html_text(str(value))}</td>'
    shown = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
    return f'<td style="text-align:right">{escape(shown)}</td>'
