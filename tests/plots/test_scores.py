"""Distributions have area 1 and their own mean; pairs and others are told apart."""

import numpy as np
import pytest

from counterpoint.errors import ConfigError
from counterpoint.plots.scores import scores_plot


def test_every_set_and_kind_is_drawn():
    rng = np.random.default_rng(0)
    pairs = {"L": rng.normal(0.1, 0.05, 5000), "H": rng.normal(0.8, 0.02, 300)}
    others = {"L": rng.normal(0, 0.05, 5000), "H": np.zeros(0)}
    axes = scores_plot(pairs, others, "a title").axes
    curves = {line.get_label(): line.get_data() for line in axes.lines if ":" in str(line.get_label())}
    assert list(curves) == ["L: pairs (mean 0.10)", "L: others (mean 0.00)", "H: pairs (mean 0.80)"]
    for label, (x, y) in curves.items():
        assert np.trapezoid(y, x) == pytest.approx(1, abs=0.02)
        mean = np.trapezoid(x * y, x)
        assert mean == pytest.approx(float(label[-5:-1]), abs=0.02)
    styles = [line.get_linestyle() for line in axes.lines if line.get_label() in curves]
    assert styles == ["-", "--", "-"]
    assert {text.get_text() for text in axes.texts} == {"isotropic", "anisotropic"}
    assert axes.get_title() == "a title"


def test_every_set_is_in_the_legend():
    axes = scores_plot({"_L": np.ones(3)}, {"_L": np.zeros(3)}).axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["_L: pairs (mean 1.00)", "_L: others (mean 0.00)"]


def test_nothing_to_draw():
    with pytest.raises(ConfigError, match="no pair of texts"):
        scores_plot({"L": np.zeros(0)}, {"L": np.ones(3)})
