"""Three vectors component by component, before and after a map (Isotropic DR, figure 4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError
from counterpoint.plots.canvas import PALETTE, Picture, picture

__all__ = ["components_plot"]

Versions = Mapping[str, Mapping[str, Float[np.ndarray, " d"]]]

COLOURS = {"query": PALETTE[1], "relevant document": PALETTE[0], "other document": PALETTE[5]}


def components_plot(versions: Versions, title: str = "") -> Picture:
    """Plot every component of some vectors; a spike that all share is an outlier dimension.

    Each vector is divided by the root mean square of its components, so that versions of different scale can
    be compared. Without outliers, nearly all components lie between −3 and 3. A version, such as `as encoded`
    or `whitened`, has vectors named `query`, `relevant document` and `other document`, or some of them.

    Raises:
        ConfigError: there is nothing to draw, or a vector has another name.
        MissingExtraError: matplotlib is not installed.
    """
    unknown = [name for vectors in versions.values() for name in vectors if name not in COLOURS]
    if unknown or not any(versions.values()):
        what = f"unknown vector {unknown[0]!r}" if unknown else "there is no vector to draw"
        raise ConfigError(f"{what}; expected {', '.join(COLOURS)}")
    scaled = [
        (version, name, values / (np.sqrt(np.square(values).mean()) or 1.0))
        for version, vectors in versions.items()
        for name, values in vectors.items()
    ]
    reach = max(float(np.abs(values).max()) for _, _, values in scaled)
    made = picture(7.5, 1.1 * len(scaled) + 0.6)
    axes = made.axes
    middles = [-2 * reach * at for at in range(len(scaled))]
    for middle, (_, name, values) in zip(middles, scaled, strict=True):
        axes.axhline(middle, color="#cccccc", linewidth=0.6, zorder=1)
        axes.vlines(np.arange(len(values)), middle, middle + values, color=COLOURS[name], linewidth=1.0)
    axes.set_yticks(middles, [f"{name}\n{version}" for version, name, _ in scaled])
    axes.set_ylim(-2 * reach * (len(scaled) - 0.5), reach)
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.01)
    axes.set_xlabel(f"component (the largest is {reach:.1f} times the root mean square of its vector)")
    axes.set_title(title, fontsize=10)
    return made
