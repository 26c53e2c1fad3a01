"""How the variance of each side is shared out among directions: a collapse shows as a cliff."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError
from counterpoint.plots.canvas import PALETTE, Picture, picture

__all__ = ["spectrum_plot"]

COLOURS = {"queries": PALETTE[1], "documents": PALETTE[0]}
DEEPEST = 1e-8  # shares below this are rounding of float32 vectors


def spectrum_plot(variances: Mapping[str, Float[np.ndarray, " r"]], title: str = "") -> Picture:
    """Shares of the variance by principal direction, on a logarithmic axis; a line for each side.

    Args:
        variances: by side (`queries`, `documents`), as `counterpoint.measure.alignment.spectrum` gives them.
        title: above the picture.

    Raises:
        ConfigError: nothing varies on any side.
        MissingExtraError: matplotlib is not installed.
    """
    from counterpoint.measure.alignment import participation_ratio

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
    axes.set_yscale("log")
    _number(axes.yaxis)
    axes.set_xlabel("principal direction")
    axes.set_ylabel("share of the variance")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    return made


def _number(axis: Any) -> None:
    """Plain numbers where a logarithmic axis would write formulas, with the digits that tell ticks apart."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:.3g}" if super().__call__(x, pos) else ""  # which ticks it leaves without a label

    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain())
