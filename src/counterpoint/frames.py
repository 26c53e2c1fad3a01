"""Results as tables of other tools: pandas frames, and the tables that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from counterpoint.errors import MissingExtraError
from counterpoint.pages import render

if TYPE_CHECKING:
    import pandas

__all__ = ["frame", "html_table"]

WIDE = 60  # characters of a cell that gets room for a line of them


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
    cells = [[_cell(value) for value in row] for row in rows]
    return render("table.html", caption=caption, header=header, rows=cells, notes=notes)


def _cell(value: object) -> dict[str, Any]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {"text": value, "number": False, "wide": len(str(value)) > WIDE}
    return {"text": f"{value:,}" if isinstance(value, int) else f"{value:.4f}", "number": True, "wide": False}
