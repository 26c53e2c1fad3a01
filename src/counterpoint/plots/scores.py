"""Distributions of the similarity between rows of queries and documents (HIL, figures 2 and 6)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError
from counterpoint.plots.canvas import PALETTE, Picture, picture

__all__ = ["Scores", "scores_plot"]

Scores = Mapping[str, Float[np.ndarray, " n"]]

BINS = (16, 100)  # fewest and most; about √n for n values
IDEALS = {"isotropic": 0.0, "anisotropic": 1.0}


def scores_plot(together: Scores, other: Scores, title: str = "") -> Picture:
    """Plot the density of cosines, one colour per set; matching pairs filled, all others as a line.

    Dotted lines mark the cosine of all rows in an isotropic and in an anisotropic space. `together` has the
    cosines of the rows of texts that belong together, by set, and `other` those of other texts.

    Raises:
        ConfigError: there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    names = [name for name in together if len(together[name])]
    if not names:
        raise ConfigError("there is nothing to draw; no pair of texts has rows")
    made = picture(6.5, 3.8)
    axes = made.axes
    values = np.concatenate([part[name] for part in (together, other) for name in names if name in part])
    low, high = min(float(values.min()), -0.05), max(float(values.max()), 1.0)
    for at, name in enumerate(names):
        colour, own = PALETTE[at % len(PALETTE)], together[name]
        middles, heights = _density(own, low, high)
        label = f"{name}: pairs (mean {own.mean():.2f})"
        axes.fill_between(middles, heights, color=colour, alpha=0.3, linewidth=0)
        axes.plot(middles, heights, color=colour, linewidth=1.6, label=label)
        if len(rest := other.get(name, own[:0])):
            label = f"{name}: others (mean {rest.mean():.2f})"
            axes.plot(*_density(rest, low, high), color=colour, linewidth=1.2, linestyle="--", label=label)
    drawn = list(axes.lines)  # for the legend; matplotlib leaves out a label that begins with _
    for word, place in IDEALS.items():
        axes.axvline(place, color="#555555", linestyle=":", linewidth=1.2)
        axes.text(
            place, 1.01, word, transform=axes.get_xaxis_transform(), ha="center", va="bottom", fontsize=8,
            color="#555555",
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set(yticks=[], xlabel="cosine of a row of a query and a row of a document", ylabel="density")
    axes.set_title(title, fontsize=10, pad=16)
    axes.legend(handles=drawn, frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return made


def _density(
    values: Float[np.ndarray, " n"], low: float, high: float
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    """Centres of the bins, and a histogram of area 1."""
    bins = int(np.clip(np.sqrt(len(values)), *BINS))
    heights, edges = np.histogram(values, bins, (low, high), density=True)
    return (edges[1:] + edges[:-1]) / 2, heights
