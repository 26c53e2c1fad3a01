"""Queries and documents in the plane of their first two principal components (DAFT, figures 1, 3 and 5)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError
from counterpoint.plots.canvas import PALETTE, Picture, picture

__all__ = ["pca_plot", "principal_plane"]

GROUPS = {
    "queries": (PALETTE[1], "o", 12),
    "relevant documents": (PALETTE[0], "^", 14),
    "other documents": (PALETTE[5], "o", 10),
}
"""Colour, marker and size of each group, as in DAFT: queries orange, documents blue."""

POINTS = 1500  # points per group; more would hide one another


def principal_plane(rows: Float[np.ndarray, "n d"]) -> tuple[Float[np.ndarray, "n 2"], tuple[float, float]]:
    """Project rows on their first two principal directions; also return each one's share of the variance.

    A direction's sign is arbitrary. The largest coordinate is made positive, so that the same vectors give
    the same picture.

    Raises:
        ConfigError: there are fewer than three rows or fewer than two components.
    """
    if len(rows) < 3 or rows.shape[1] < 2:
        raise ConfigError(f"a plane needs three vectors of two components, found an array of {rows.shape}")
    centred = np.asarray(rows, np.float64) - rows.mean(0, dtype=np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)
    places = centred @ directions[:, :-3:-1]
    places *= np.sign(places[np.abs(places).argmax(0), [0, 1]])
    first, second = np.square(places).sum(0) / (np.square(centred).sum() or 1)
    return places, (float(first), float(second))


def pca_plot(groups: Mapping[str, Float[np.ndarray, "n d"]], title: str = "") -> Picture:
    """Plot one point per vector in the plane of the first two components; large groups are sampled.

    The groups are `queries`, `relevant documents`, `other documents`, or some of them. The one with the least
    spread is on top, so that a group that has collapsed to a point is not hidden.

    Raises:
        ConfigError: a group is unknown, or there are too few vectors for a plane.
        MissingExtraError: matplotlib is not installed.
    """
    unknown = [name for name in groups if name not in GROUPS]
    if unknown:
        raise ConfigError(f"unknown group {unknown[0]!r}; it must be one of {', '.join(GROUPS)}")
    shown = [name for name in GROUPS if name in groups and len(groups[name])]
    places, shares = principal_plane(np.concatenate([groups[name] for name in shown]))
    made = picture(5.2, 5.2)
    axes = made.axes
    start = 0
    for name in shown:
        colour, marker, size = GROUPS[name]
        mine = places[start : start + len(groups[name])]
        start += len(mine)
        narrow = 1 / (1 + np.linalg.norm(mine.std(0)))
        mine = mine[:: -(-len(mine) // POINTS)]
        axes.scatter(
            *mine.T, s=size, c=colour, marker=marker, alpha=0.6, linewidths=0, zorder=2 + narrow,
            label=f"{name} ({len(mine):,})",
        )  # fmt: skip
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(f"first component ({shares[0]:.0%} of the variance)")
    axes.set_ylabel(f"second component ({shares[1]:.0%})")
    axes.set_title(title, fontsize=10)
    legend = axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=len(shown), frameon=False, fontsize=9,
        handletextpad=0.1, columnspacing=1.0, markerscale=1.8,
    )  # fmt: skip
    for handle in filter(None, legend.legend_handles):
        handle.set_alpha(1)
    return made
