"""Overlap of sets: circles in true proportion for two sets, one bar per region for more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from counterpoint.errors import ConfigError
from counterpoint.plots.canvas import PALETTE, Picture, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from counterpoint.measure.overlap import Overlap

__all__ = ["circle_distance", "overlap_plot"]

STEPS = 60  # bisections; the distance is then exact to the last digits of a float


def overlap_plot(
    overlaps: Sequence[tuple[str, Overlap]], title: str = "", *, of_universe: bool = False
) -> Picture:
    """Plot labelled overlaps with the share of every region: of two sets side by side, otherwise all as bars.

    Shares are those of the union. With `of_universe`, they are those of the universe, and RoC and the share
    in no set are shown, too (RoC, figure 1).

    Raises:
        ConfigError: all sets are empty, and shares are those of the union.
        MissingExtraError: matplotlib is not installed.
    """
    if not of_universe and not any(overlap.union for _, overlap in overlaps):
        raise ConfigError("all sets are empty, so there is no overlap to draw")
    if all(len(overlap.names) == 2 for _, overlap in overlaps):
        made = picture(3.2 * len(overlaps), 3.4)
        for at, (label, overlap) in enumerate(overlaps):
            _circles(made.axes, 3.2 * at, label, overlap, of_universe)
        made.axes.set_aspect("equal")
        made.axes.set(xlim=(-1.6, 3.2 * len(overlaps) - 1.6), ylim=(-1.9 if of_universe else -1.5, 1.6))
        made.axes.axis("off")
    else:
        made = _bars(overlaps, of_universe)
    made.axes.set_title(title, fontsize=10)
    return made


def circle_distance(first: float, second: float, shared: float) -> float:
    """Distance between the centres of two circles with given areas and a given shared area.

    Found by bisection. Areas may have any unit; the distance is in its square root.
    """
    a, b = math.sqrt(first / math.pi), math.sqrt(second / math.pi)
    low, high = abs(a - b), a + b
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _lens(a, b, middle) > shared else (low, middle)
    return (low + high) / 2


def _lens(a: float, b: float, distance: float) -> float:
    if distance >= a + b:
        return 0.0
    if distance <= abs(a - b):
        return math.pi * min(a, b) ** 2
    x = (distance**2 + a**2 - b**2) / (2 * distance)
    height = math.sqrt(max(a**2 - x**2, 0.0))
    sectors = a**2 * math.atan2(height, x) + b**2 * math.atan2(height, distance - x)
    return sectors - distance * height


def _whole(overlap: Overlap, of_universe: bool) -> float:
    return ((overlap.universe or 0) if of_universe else overlap.union) or 1


def _circles(axes: Axes, x: float, label: str, overlap: Overlap, of_universe: bool) -> None:
    """Draw two circles around `x`, together 2.4 units wide."""
    from matplotlib.patches import Circle

    first, second = overlap.names
    sizes = overlap.size(first), overlap.size(second)
    radii = [math.sqrt(size / math.pi) for size in sizes]
    distance = circle_distance(*sizes, overlap.both(first, second))
    left, right = min(-radii[0], distance - radii[1]), max(radii[0], distance + radii[1])
    scale = 2.4 / ((right - left) or 1)
    centres = [x + scale * (at - (left + right) / 2) for at in (0.0, distance)]
    for centre, radius, colour in zip(centres, radii, PALETTE, strict=False):
        axes.add_patch(Circle((centre, 0), scale * radius, color=colour, alpha=0.45, linewidth=0))
    edges = [centres[0] - scale * radii[0], centres[0] + scale * radii[0]]
    others = [centres[1] - scale * radii[1], centres[1] + scale * radii[1]]
    places = {
        (first,): (edges[0] + min(edges[1], others[0])) / 2,
        (second,): (max(others[0], edges[1]) + others[1]) / 2,
        (first, second): (max(edges[0], others[0]) + min(edges[1], others[1])) / 2,
    }
    for region, place in places.items():
        if size := overlap.regions.get(region, 0):
            share = f"{size / _whole(overlap, of_universe):.1%}"
            axes.text(place, 0, share, ha="center", va="center", fontsize=9)
    axes.text(x, 1.45, label, ha="center", va="center", fontsize=10)
    if of_universe:
        axes.text(x, -1.85, f"in none: {overlap.failure:.1%}", ha="center", va="center", fontsize=9)
    for name, side, colour in zip(overlap.names, (-0.65, 0.65), PALETTE, strict=False):
        axes.text(x + side, -1.4, name, ha="center", va="center", fontsize=9, color=colour)
        if of_universe:
            ratio = overlap.complementarity(name, second if name == first else first)
            shown = "–" if math.isnan(ratio) else f"{ratio:.3f}"
            axes.text(x + side, -1.6, f"RoC {shown}", ha="center", va="center", fontsize=9)


def _bars(overlaps: Sequence[tuple[str, Overlap]], of_universe: bool) -> Picture:
    regions = sorted({r for _, overlap in overlaps for r in overlap.regions}, key=lambda r: (-len(r), r))
    labels = [" ∩ ".join(region) for region in regions] + ["none"] * of_universe
    made = picture(6.0, 1.2 + 0.28 * len(labels) * len(overlaps))
    height = 0.8 / len(overlaps)
    for at, (_, overlap) in enumerate(overlaps):
        shares = [overlap.regions.get(region, 0) / _whole(overlap, of_universe) for region in regions]
        shares += [overlap.failure] * of_universe
        places = [row + (len(overlaps) - 1 - 2 * at) * height / 2 for row in range(len(labels))]
        made.axes.barh(places, shares, height, color=PALETTE[at % len(PALETTE)])
    made.axes.set_yticks(range(len(labels)), labels)
    made.axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    made.axes.set_xlabel("share of all" if of_universe else "share of the union")
    # Explicit, since matplotlib leaves out a label that begins with _.
    made.axes.legend(made.axes.containers, [label for label, _ in overlaps], frameon=False, fontsize=9)
    return made
