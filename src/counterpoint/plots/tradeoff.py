"""Effectiveness against cost: one point per system, with the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from counterpoint.errors import ConfigError
from counterpoint.plots.canvas import PALETTE, Picture, picture, shared_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Point", "pareto_front", "tradeoff"]

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
PLACES = ((0, 9), (0, -9), (9, 0), (-9, 0), (8, 8), (-8, 8), (8, -8), (-8, -8), (0, 19), (0, -19), (19, 0))
"""Possible offsets of a label from its mark, in points, best first."""

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""


@final
@dataclass(frozen=True)
class Point:
    """One system.

    Attributes:
        cost: bytes or milliseconds; above 0, since the axis is logarithmic.
        value: effectiveness.
        label: a short label, such as the row number in a table.
        colour: name of what a colour stands for, such as the model.
        marker: name of what a shape stands for, such as the workflow.
    """

    cost: float
    value: float
    label: str
    colour: str
    marker: str


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Pareto-optimal points by rising cost: no other is as cheap and better, or as good and cheaper.

    Points that are equal in both are all kept.
    """
    front = (point for point in points if not any(_beats(other, point) for other in points))
    return sorted(front, key=lambda point: point.cost)


def _beats(a: Point, b: Point) -> bool:
    return a.cost <= b.cost and a.value >= b.value and (a.cost, a.value) != (b.cost, b.value)


def tradeoff(points: Sequence[Point], *, cost: str, value: str, among: Sequence[Point] = ()) -> Picture:
    """Plot value against cost, with the Pareto front as steps (ColBERTer's figure 4, DAFT's figure 6).

    `cost` and `value` label the axes; that of costs is logarithmic. `among` has the points of all pictures in
    a group, so that a name looks the same in each.

    Raises:
        ConfigError: there are no points, or a cost is not above 0.
        MissingExtraError: matplotlib is not installed.
    """
    if not points:
        raise ConfigError("a trade-off needs at least one point")
    wrong = [point for point in points if point.cost <= 0]
    if wrong:
        raise ConfigError(
            f"{cost}: a logarithmic axis needs costs above 0, but {wrong[0].label!r} has {wrong[0].cost}"
        )
    made = picture(7, 4.2)
    axes = made.axes
    colours = shared_out(PALETTE, (point.colour for point in [*among, *points]))
    markers = shared_out(MARKERS, (point.marker for point in [*among, *points]))
    front = pareto_front(points)
    costs, values = [point.cost for point in front], [point.value for point in front]
    axes.step(costs, values, where="post", color="#777777", linewidth=1.2, zorder=1)
    for point in points:
        colour, marker = colours[point.colour], markers[point.marker]
        axes.plot(point.cost, point.value, color=colour, marker=marker, markersize=7, markeredgecolor="white")
    axes.set(xscale="log", xlabel=cost, ylabel=value)
    axes.margins(0.08, 0.12)
    _plain_ticks(axes)
    shown = {point.colour for point in points}, {point.marker for point in points}
    _legend(axes, _only(shown[0], colours), _only(shown[1], markers))
    _label(made, points)
    return made


def _only(names: set[str], looks: Mapping[str, str]) -> dict[str, str]:
    return {name: look for name, look in looks.items() if name in names}


def _plain_ticks(axes: Axes) -> None:
    """Label ticks 200 rather than 2 × 10²; use all of 1, 2 and 5 if the axis spans little."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_xlim()
    steps = (1.0, 2.0, 5.0) if high / low < 3000 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=steps, numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x >= 1 else f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes, colours: dict[str, str], markers: dict[str, str]) -> None:
    from matplotlib.lines import Line2D

    def sample(name: str, colour: str, marker: str) -> Line2D:
        return Line2D([], [], color=colour, marker=marker, linestyle="", markersize=6, label=name)

    handles = [sample(name, colour, "o") for name, colour in colours.items()]
    handles.append(sample("", "none", ""))
    handles += [sample(name, "#555555", marker) for name, marker in markers.items()]
    handles.append(Line2D([], [], color="#777777", linewidth=1.2, label="Pareto front"))
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)


def _label(made: Picture, points: Sequence[Point]) -> None:
    """Place each label where it overlaps marks and labels least; equal points share one label."""
    from matplotlib.patheffects import withStroke

    together: dict[tuple[float, float], list[str]] = {}
    for point in points:
        together.setdefault((point.cost, point.value), []).append(point.label)
    scale = made.figure.dpi / 72
    marks = made.axes.transData.transform(list(together)) / scale
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in marks]
    for (x, y), place, labels in zip(marks, together, together.values(), strict=True):
        text = ", ".join(labels)
        boxes = [_box(x, y, offset, text) for offset in PLACES]
        chosen = min(boxes, key=lambda box: sum(_overlap(box, other) for other in taken))
        taken.append(chosen)
        offset = ((chosen[0] + chosen[2]) / 2 - x, (chosen[1] + chosen[3]) / 2 - y)
        drawn = made.axes.annotate(
            text, place, xytext=offset, textcoords="offset points", ha="center", va="center", fontsize=8
        )
        drawn.set_path_effects([withStroke(linewidth=2, foreground="white")])  # readable over a line


def _box(x: float, y: float, offset: tuple[float, float], text: str) -> Box:
    """Box of a text placed next to, above or below a mark, in points."""
    half = 2.4 * len(text) + 1
    side = (offset[0] > 0) - (offset[0] < 0)
    middle = x + offset[0] + side * (half - 4)
    return middle - half, y + offset[1] - 4.5, middle + half, y + offset[1] + 4.5


def _overlap(a: Box, b: Box) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)
