"""Share of each side's variance by principal direction; a collapse shows as a steep drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError
from counterpoint.measure.alignment import participation_ratio
from counterpoint.plots.canvas import PALETTE, Picture, picture

__all__ = ["spectrum_plot"]

COLOURS = {"queries": PALETTE[1], "documents": PALETTE[0]}
DEEPEST = 1e-8  # shares below this are rounding errors of float32 vectors


def spectrum_plot(variances: Mapping[str, Float[np.ndarray, " r"]], title: str = "") -> Picture:
    """Plot shares of the variance by principal direction on a logarithmic axis, one line per side.

    A side (`queries`, `documents`) has the result of `counterpoint.measure.alignment.spectrum`.

    Raises:
        ConfigError: nothing varies on any side.
        MissingExtraError: matplotlib is not installed.
    """
    varying = {side: values for side, values in variances.items() if values.sum() > 0}
    if not varying:
        raise ConfigError("a spectrum needs vectors that differ; all of these are one point")
    made = picture(6.0, 3.8)
    axes = made.axes
    for at, (side, values) in enumerate(varying.items()):
        shares = values / values.sum()
        shares = shares[shares >= DEEPEST]
        rank = participation_ratio(values)
        axes.plot(
            np.arange(1, len(shares) + 1), shares, color=COLOURS.get(side, PALETTE[at + 2]), linewidth=1.6,
            marker="o" if len(shares) < 3 else None, label=f"{side} (effective rank {rank:.1f})",
        )  # fmt: skip
    axes.set(yscale="log", xlabel="principal direction", ylabel="share of the variance")
    _number(axes.yaxis)
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    return made


def _number(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers, with enough digits to distinguish ticks."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            # Empty for the ticks that it does not label.
            return f"{x:.3g}" if super().__call__(x, pos) else ""

    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain())
