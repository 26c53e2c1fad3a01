"""Forest plot: the effect in each collection with its interval, and the summary (ColBERTer, figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from counterpoint.errors import DataError
from counterpoint.measure.significance import Interval
from counterpoint.measure.synthesis import Synthesis
from counterpoint.plots.canvas import PALETTE, Picture, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["forest_plot"]

ROW = 0.32  # inches
LEFT, CONTROL, TREATMENT, RIGHT, WEIGHT = -0.92, -0.27, -0.05, 1.04, 1.48
"""Positions of the columns of text, in widths of the plotted area."""


def forest_plot(syntheses: Sequence[Synthesis]) -> Picture:
    """Plot one block per synthesis: a diamond and an interval per collection, and the summary below.

    Diamonds grow with the weight of their collection. An interval that does not reach the dotted line at 0
    is a significant effect. To the right of the line, the treatment is better.

    Raises:
        DataError: there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    if not syntheses:
        raise DataError(
            "a forest plot needs two systems on two collections or more, and an effect that is defined"
        )
    rows = sum(len(synthesis.effects) + 3 for synthesis in syntheses)
    made = picture(5.0, ROW * rows + 0.5)
    axes = made.axes
    y = 0.0
    for synthesis in syntheses:
        y = _block(axes, synthesis, y)
    axes.set(ylim=(-y - 0.2, 0.8), yticks=[])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    level = 100 * syntheses[0].comparisons[0].settings.confidence
    axes.set_xlabel(
        f"standardised mean difference ({level:g} % interval)\n← control is better    treatment is better →"
    )
    return made


def _block(axes: Axes, synthesis: Synthesis, y: float) -> float:
    """Draw one synthesis from `y` downwards; return the start of the next."""
    settings, summary = synthesis.comparisons[0].settings, synthesis.summary
    title = f"{synthesis.treatment} (treatment) against {synthesis.control} (control), {synthesis.measure}"
    _write(axes, LEFT, y, title, weight="bold")
    y += 1
    top = y
    for x, text in ((CONTROL, "control"), (TREATMENT, "treatment"), (RIGHT, "effect"), (WEIGHT, "weight")):
        _write(axes, x, y, text, color="#555555", align="left" if x > 0 else "right")
    for comparison, effect, weight in zip(
        synthesis.comparisons, synthesis.effects, summary.weights, strict=True
    ):
        y += 1
        interval = effect.interval(settings.confidence)
        _write(axes, LEFT, y, f"{comparison.collection} ({len(comparison.queries)} queries)")
        for x, system in ((CONTROL, synthesis.control), (TREATMENT, synthesis.treatment)):
            _write(axes, x, y, f"{comparison.means[system]:.3f}", align="right")
        _numbers(axes, y, effect.estimate, interval, weight)
        axes.plot(interval, (-y, -y), color="#888888", linewidth=1.6, solid_capstyle="butt", zorder=2)
        axes.plot(effect.estimate, -y, marker="D", color=PALETTE[0], markersize=4 + 5 * weight**0.5, zorder=3)
    y += 1
    _write(axes, LEFT, y, "summary effect", weight="bold")
    _numbers(axes, y, summary.estimate, summary.interval, 1.0)
    low, high = summary.interval
    corners_x, corners_y = (low, summary.estimate, high, summary.estimate), (-y, -y + 0.3, -y, -y - 0.3)
    axes.fill(corners_x, corners_y, color=PALETTE[1], zorder=3)
    axes.plot((0, 0), (0.5 - top, -y - 0.5), color="black", linestyle=":", linewidth=1, zorder=1)
    return y + 1.3


def _numbers(axes: Axes, y: float, estimate: float, interval: Interval, weight: float) -> None:
    text = f"{estimate:.2f} [{interval.low:.2f}, {interval.high:.2f}]".replace("-", "−")
    _write(axes, RIGHT, y, text)
    _write(axes, WEIGHT, y, f"{weight:.0%}")


def _write(axes: Axes, x: float, y: float, text: str, *, align: str = "left", **style: Any) -> None:
    """Write text: `x` in widths of the plotted area, `y` in rows from the top."""
    style = {"weight": "normal", "color": "black", **style}
    axes.text(x, -y, text, transform=axes.get_yaxis_transform(), ha=align, va="center", **style)
