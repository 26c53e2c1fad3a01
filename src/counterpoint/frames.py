"""Results as pandas frames and as tables in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from counterpoint.errors import MissingExtraError
from counterpoint.pages import render

if TYPE_CHECKING:
    import pandas

__all__ = ["frame", "html_table"]

WIDE = 60  # characters above which a cell gets a wide column


def frame(columns: Mapping[str, Sequence[Any]], index: list[str] | None = None) -> pandas.DataFrame:
    """Make a pandas frame of columns, with rows numbered or named by `index`.

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
    """A table for a notebook, in the notebook's colours: numbers right-aligned, floats with four digits."""
    cells = [[_cell(value) for value in row] for row in rows]
    return render("table.html", caption=caption, header=header, rows=cells, notes=notes)


def _cell(value: object) -> dict[str, Any]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {"text": value, "number": False, "wide": len(str(value)) > WIDE}
    return {"text": f"{value:,}" if isinstance(value, int) else f"{value:.4f}", "number": True, "wide": False}
