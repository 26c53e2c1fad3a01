"""Plots of results with matplotlib (the extra `plot`), without its global state."""

from counterpoint.plots.canvas import PALETTE, Picture, check_format, picture
from counterpoint.plots.forest import forest_plot

__all__ = ["PALETTE", "Picture", "check_format", "forest_plot", "picture"]
