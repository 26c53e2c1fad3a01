"""The spectrum shows shares of the variance, down to what float32 vectors can say."""

import numpy as np
import pytest

from counterpoint.errors import ConfigError
from counterpoint.plots import PALETTE
from counterpoint.plots.spectrum import spectrum_plot


def test_shares_by_direction():
    variances = {"queries": np.array([3.0, 1.0, 0.0]), "documents": np.array([2.0, 2.0, 1e-12])}
    axes = spectrum_plot(variances, "cls").axes
    queries, documents = axes.lines
    assert queries.get_ydata().tolist() == [0.75, 0.25] and queries.get_xdata().tolist() == [1, 2]
    assert documents.get_ydata().tolist() == pytest.approx([0.5, 0.5])  # the third is rounding
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["queries (effective rank 1.6)", "documents (effective rank 2.0)"]  # 16/10, 16/8
    assert queries.get_color() == PALETTE[1] and axes.get_yscale() == "log" and axes.get_title() == "cls"


@pytest.mark.parametrize(
    ("values", "minor", "shown"),
    [
        ([0.9, 0.1, 1e-3], False, ["0.001", "0.01", "0.1", "1"]),
        ([3, 2], True, ["0.4", "0.5", "0.6"]),
    ],
)
def test_ticks_are_plain_numbers(values, minor, shown):
    """The axis's own are formulas, which no picture reads."""
    axes = spectrum_plot({"queries": np.array(values)}).axes
    low, high = axes.get_ylim()
    labels = zip(axes.get_yticklabels(minor=minor), axes.get_yticks(minor=minor), strict=True)
    assert [text for label, at in labels if low <= at <= high and (text := label.get_text())] == shown


def test_ticks_of_a_flat_spectrum_differ():
    axes = spectrum_plot({"queries": np.array([1.0, 0.99, 0.98])}).axes
    low, high = axes.get_ylim()
    ticks = zip(axes.get_yticklabels(minor=True), axes.get_yticks(minor=True), strict=True)
    labels = [text for label, at in ticks if low <= at <= high and (text := label.get_text())]
    assert len(labels) > 2 and len(set(labels)) == len(labels)


def test_a_side_that_is_one_point_has_no_spectrum():
    axes = spectrum_plot({"queries": np.zeros(3), "documents": np.ones(3)}).axes
    assert len(axes.lines) == 1
    with pytest.raises(ConfigError, match="one point"):
        spectrum_plot({"queries": np.zeros(3)})
