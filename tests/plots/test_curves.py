"""Curves are the numbers of the file, stage after stage."""

import math

import numpy as np
import pytest

from counterpoint.errors import ConfigError
from counterpoint.plots.curves import POINTS, Curve, curves_of, curves_plot, stages_of

RECORDS = [
    {"number": 0, "stage": "align", "step": 0, "alignment.kl": 9.0},
    {"number": 0, "stage": "align", "step": 10, "loss": 3.0, "lr": 1e-5},
    {"number": 0, "stage": "align", "step": 20, "loss": 2.0, "stopped": "aligned"},
    {"number": 2, "stage": "tune", "step": 10, "loss": 4.0, "loss_of_queries": 1},
]


def test_steps_are_counted_over_the_stages():
    assert stages_of(RECORDS) == [(0, "align", 0), (2, "tune", 20)]
    assert curves_of(RECORDS, "loss") == [Curve("loss", (10, 20), (3.0, 2.0)), Curve("loss", (30,), (4.0,))]
    assert [curve.name for curve in curves_of(RECORDS, "loss*")] == ["loss", "loss", "loss_of_queries"]
    assert curves_of(RECORDS, "alignment.*") == [Curve("alignment.kl", (0,), (9.0,))]
    assert curves_of(RECORDS, "stopped") == [] == curves_of(RECORDS, "step")


def test_every_value_stage_and_level_is_drawn():
    curves, stages = curves_of(RECORDS, "loss"), stages_of(RECORDS)
    axes = curves_plot(curves, value="the loss", stages=stages, levels={"ln 65": math.log(65)}).axes
    lines = [tuple(map(tuple, line.get_data())) for line in axes.lines]
    for curve in curves:
        assert (curve.steps, curve.values) in lines
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["loss"]
    assert {text.get_text().strip() for text in axes.texts} == {"ln 65", "align", "tune"}
    assert axes.get_ylabel() == "the loss"
    assert any(line.get_ydata()[0] == math.log(65) for line in axes.lines)


def test_a_long_curve_is_also_drawn_as_its_running_mean():
    values = np.random.default_rng(0).normal(size=10 * POINTS)
    curve = Curve("loss", tuple(range(len(values))), tuple(values))
    raw, smooth = curves_plot([curve], value="").axes.lines
    np.testing.assert_array_equal(raw.get_ydata(), values)
    width = len(values) - len(smooth.get_ydata()) + 1
    assert 1 < width < 30
    assert smooth.get_ydata()[3] == pytest.approx(values[3 : 3 + width].mean())
    assert smooth.get_xdata()[3] == pytest.approx(3 + (width - 1) / 2)


def test_names_are_shown_as_they_are():
    curves, stages = [Curve("_a$^$", (1, 2), (0.5, 0.25))], [(0, "$^$", 0), (1, "$_$", 1)]
    made = curves_plot(curves, value="$^$", stages=stages, levels={"$_$": 0.3})
    assert [text.get_text() for text in made.axes.get_legend().get_texts()] == ["_a$^$"]
    assert made.svg().startswith("<svg")


def test_nothing_to_draw():
    with pytest.raises(ConfigError, match="nothing to draw"):
        curves_plot([], value="loss")
