"""Training curves by step, over all stages (DAFT, figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any, final

import numpy as np

from counterpoint.errors import ConfigError
from counterpoint.plots.canvas import PALETTE, Picture, picture, shared_out

__all__ = ["Curve", "curves_of", "curves_plot", "measures_of", "stages_of"]

POINTS = 40  # values in a stage above which a running mean is drawn, too


@final
@dataclass(frozen=True)
class Curve:
    """The values of one number in one stage; steps are counted over all stages."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


def curves_of(records: Sequence[Mapping[str, Any]], pattern: str) -> list[Curve]:
    """Curves of the numbers whose names match a pattern such as `watch.*.cosine`, by name and stage.

    Records are lines of a run's `metrics.jsonl`, with the stage's `number` and name, the `step` in it, and
    numbers by name. The pattern has the wildcards of file names.
    """
    begins = {number: begin for number, _, begin in stages_of(records)}
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for record in records:
        number = record["number"]
        for name in record.keys() - {"number", "stage", "step"}:
            value = record[name]
            if isinstance(value, int | float) and fnmatchcase(name, pattern):
                found.setdefault((name, number), []).append((begins[number] + record["step"], float(value)))
    return [Curve(name, *zip(*points, strict=True)) for (name, _), points in sorted(found.items())]


def measures_of(records: Sequence[Mapping[str, Any]]) -> list[Curve]:
    """Curves of the evaluations, by measure and stage; `records` as for `curves_of`."""
    found = [
        {key: value for key, value in record.items() if "." not in key or "@" in key}
        for record in records
        if "loss" not in record  # not the line of a training step
    ]
    begins = {number: begin for number, _, begin in stages_of(records)}
    moved = [{**line, "number": 0, "step": begins[line["number"]] + line["step"]} for line in found]
    return curves_of(moved, "*")


def stages_of(records: Sequence[Mapping[str, Any]]) -> list[tuple[int, str, int]]:
    """Number, name and first step (counted over all stages) of every stage."""
    last: dict[int, tuple[str, int]] = {}
    for record in records:
        last[record["number"]] = record["stage"], record["step"]
    begins = accumulate((steps for _, steps in last.values()), initial=0)
    return [(number, name, begin) for (number, (name, _)), begin in zip(last.items(), begins, strict=False)]


def curves_plot(
    curves: Sequence[Curve],
    *,
    value: str,
    stages: Sequence[tuple[int, str, int]] = (),
    levels: Mapping[str, float] | None = None,
    along: str = "step",
) -> Picture:
    """Plot values against steps, one colour per name; long curves get a running mean as well.

    Args:
        curves: the curves.
        value: label of the vertical axis.
        stages: result of `stages_of`; several stages are separated by vertical lines.
        levels: dotted horizontal lines by name, such as ln 65.
        along: label of the horizontal axis.

    Raises:
        ConfigError: there is no curve.
        MissingExtraError: matplotlib is not installed.
    """
    if not curves:
        raise ConfigError("there is nothing to draw; no number has a matching name")
    made = picture(6.5, 3.8)
    from matplotlib.lines import Line2D  # if it were missing, `picture` would have raised

    axes = made.axes
    colours = shared_out(PALETTE, (curve.name for curve in curves))
    for curve in curves:
        colour = colours[curve.name]
        steps, values = np.array(curve.steps), np.array(curve.values)
        marker = "o" if len(values) < 3 else None
        if len(values) > POINTS:
            axes.plot(steps, values, color=colour, linewidth=0.6, alpha=0.3)
            steps, values = _smoothed(steps, values)
        axes.plot(steps, values, color=colour, linewidth=1.6, marker=marker)
    handles = [Line2D([], [], color=colour, linewidth=1.6) for colour in colours.values()]
    axes.legend(
        handles, list(colours), frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1.0)
    )
    axes.set(xlabel=along, ylabel=value)
    axes.margins(x=0.02)
    for name, level in (levels or {}).items():
        axes.axhline(level, color="#555555", linestyle=":", linewidth=1.2)
        axes.text(
            0.01, level, name, transform=axes.get_yaxis_transform(), ha="left", va="bottom", fontsize=9,
            color="#555555",
        )  # fmt: skip
    if len(stages) > 1:
        for _, name, begin in stages:
            axes.axvline(begin, color="#999999", linewidth=0.8, linestyle="--")
            axes.text(
                begin, 1.01, f" {name}", transform=axes.get_xaxis_transform(), fontsize=9, color="#555555"
            )  # fmt: skip
    return made


def _smoothed(steps: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Running means over a twentieth of the curve, at the mean step of each window."""
    width = max(2, len(values) // (POINTS // 2))
    window = np.full(width, 1 / width)
    return np.convolve(steps, window, "valid"), np.convolve(values, window, "valid")
