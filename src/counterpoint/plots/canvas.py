"""A matplotlib figure in the style of this package, saved as a file or as SVG inside a page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.escapes import escaped_lines
from counterpoint.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PALETTE", "Picture", "check_format", "picture", "shared_out"]

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Colours of Okabe and Ito, distinct for nearly everyone, in an order that separates neighbours."""

FORMATS = (".svg", ".png", ".pdf")

STYLE: Mapping[Any, Any] = MappingProxyType(
    {
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "svg.fonttype": "path",  # looks the same on a machine without the font
        "svg.hashsalt": "counterpoint",  # equal pictures give equal files
        "savefig.facecolor": "white",
        "text.parse_math": False,  # a name may contain a $
    }
)


@final
@dataclass(frozen=True)
class Picture:
    """A figure with one pair of axes; draw on `axes`, then save it or take it as SVG."""

    figure: Figure
    axes: Axes

    def save(self, path: str | Path) -> None:
        """Write a `.svg`, `.png` or `.pdf`, whole or not at all.

        Raises:
            ConfigError: the file has another ending.
            ArtifactError: the file cannot be written.
        """
        path = Path(path)
        check_format(path)
        write_atomically(path, lambda target: target.write_bytes(self._drawn(path.suffix.lower()[1:])))

    def svg(self) -> str:
        """The picture as an `<svg>` element for a page."""
        return re.sub(r"^.*?(?=<svg)", "", self._drawn("svg").decode(), flags=re.DOTALL)

    def _drawn(self, form: str) -> bytes:
        import matplotlib
        from matplotlib.text import Text
        from matplotlib.ticker import FuncFormatter

        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[form]
        out = io.BytesIO()
        for text in self.figure.findobj(Text):  # text that was written outside of the style
            text.set_parse_math(False)
            # XML allows no controls, and fonts have no lone surrogates.
            text.set_text(escaped_lines(text.get_text()))
        for axis in (self.axes.xaxis, self.axes.yaxis):
            if isinstance(given := axis.get_major_formatter(), FuncFormatter):  # names as tick labels
                shown = FuncFormatter(lambda value, at, given=given: escaped_lines(given(value, at)))
                axis.set_major_formatter(shown)
        with matplotlib.rc_context(dict(STYLE)), warnings.catch_warnings():
            # A letter that the font lacks is drawn as a box, which is clearer than matplotlib's warning.
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            self.figure.savefig(out, format=form, dpi=150, bbox_inches="tight", metadata=undated)
        return out.getvalue()


def picture(width: float, height: float) -> Picture:
    """Make an empty picture; width and height are in inches.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing a picture", package="matplotlib", extra="plot") from error
    with matplotlib.rc_context(dict(STYLE)):
        figure = Figure(figsize=(width, height))
        return Picture(figure, figure.subplots())


def shared_out(looks: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Assign a look, such as a colour, to each name; looks repeat if there are more names."""
    return {name: looks[i % len(looks)] for i, name in enumerate(dict.fromkeys(names))}


def check_format(path: Path) -> None:
    """Refuse a file name of an unsupported picture format, before the slow part.

    Raises:
        ConfigError: the name does not end in `.svg`, `.png` or `.pdf`.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"pictures must be {', '.join(FORMATS)}, found {path.name!r}")
