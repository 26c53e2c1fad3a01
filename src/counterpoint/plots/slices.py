"""Plots over slices of the queries: wins over a baseline, and measures by length (RoC)."""

from __future__ import annotations

from collections.abc import Mapping

from counterpoint.errors import ConfigError
from counterpoint.measure.significance import WinTieLoss
from counterpoint.plots.canvas import PALETTE, Picture, picture

__all__ = ["lengths_plot", "wins_plot"]

COLOURS = {"better": PALETTE[2], "equal": "#cccccc", "worse": PALETTE[1]}


def wins_plot(rows: Mapping[str, WinTieLoss], title: str = "") -> Picture:
    """Plot one bar per row: the shares of queries that are better, equal and worse (RoC, figure 4).

    Raises:
        ConfigError: there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    if not rows:
        raise ConfigError("there is nothing to draw; no system was compared with the baseline")
    made = picture(6.0, 1.1 + 0.36 * len(rows))
    axes = made.axes
    for row, counts in enumerate(reversed(list(rows.values()))):
        left = 0.0
        for (kind, colour), count in zip(COLOURS.items(), counts, strict=True):
            share = count / (sum(counts) or 1)
            label = kind if row == 0 else None
            axes.barh(row, share, 0.7, left=left, color=colour, label=label)
            if share:
                axes.text(left + share / 2, row, f"{share:.1%}", ha="center", va="center", fontsize=8)
            left += share
    axes.set_yticks(range(len(rows)), list(rows)[::-1])
    axes.set(xlim=(0, 1), xlabel="share of queries")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return made


def lengths_plot(lines: Mapping[str, Mapping[str, float]], measure: str) -> Picture:
    """Plot one line per system over bins of lengths (RoC, figure 6).

    A line has a mean by bin; it may lack some. Bins are labelled as in `slice_by_width`, the upper edge last.

    Raises:
        ConfigError: there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    labels = {label for line in lines.values() for label in line}
    bins = sorted(labels, key=lambda label: float(label.split()[-1]))
    if not bins:
        raise ConfigError("there is nothing to draw; no query has a relevant document of known length")
    made = picture(max(4.0, 1.2 + 0.55 * len(bins)), 3.6)
    axes = made.axes
    for at, line in enumerate(lines.values()):
        places = [place for place, label in enumerate(bins) if label in line]
        colour = PALETTE[at % len(PALETTE)]
        axes.plot(places, [line[bins[place]] for place in places], marker="o", color=colour)
    axes.set_xticks(range(len(bins)), bins, rotation=45, ha="right", fontsize=8)
    axes.set(xlabel="words of the relevant documents", ylabel=measure)
    axes.legend(  # explicit, since matplotlib leaves out a label that begins with _
        axes.lines, list(lines), frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.01, 1.0)
    )
    return made
