"""Circles in true proportion: the areas that are drawn are those of the regions."""

import math

import numpy as np
import pytest
from matplotlib.patches import Circle

from counterpoint.errors import ConfigError
from counterpoint.measure import Overlap
from counterpoint.plots.venn import circle_distance, overlap_plot


@pytest.mark.parametrize("first, second, shared", [(5, 3, 1), (5, 3, 2.9), (1, 1, 0.5), (4, 1, 0.01)])
def test_circles_share_the_area_that_was_asked_for(first, second, shared):
    """Counted on a fine grid of points."""
    distance = circle_distance(first, second, shared)
    a, b = math.sqrt(first / math.pi), math.sqrt(second / math.pi)
    step = 0.002
    x, y = np.meshgrid(np.arange(-a, a, step), np.arange(-a, a, step))
    inside = (x**2 + y**2 <= a**2) & ((x - distance) ** 2 + y**2 <= b**2)
    assert inside.sum() * step**2 == pytest.approx(shared, abs=0.01)


def test_disjoint_circles_touch_and_a_part_lies_inside():
    a, b = math.sqrt(5 / math.pi), math.sqrt(3 / math.pi)
    assert circle_distance(5, 3, 0) == pytest.approx(a + b)
    assert circle_distance(5, 3, 3) == pytest.approx(a - b, abs=1e-3)
    assert circle_distance(5, 0, 0) == pytest.approx(a)


def test_two_sets_are_circles_with_the_share_of_each_region(tmp_path):
    overlap = Overlap(("l", "h"), {("l",): 30, ("l", "h"): 10, ("h",): 60})
    made = overlap_plot([("first 10", overlap), ("first 100", overlap)], "what L and H find")
    circles = [patch for patch in made.axes.patches if isinstance(patch, Circle)]
    assert len(circles) == 4
    assert circles[0].radius ** 2 / circles[1].radius ** 2 == pytest.approx(40 / 70)
    texts = [text.get_text() for text in made.axes.texts]
    assert texts[:6] == ["30.0%", "60.0%", "10.0%", "first 10", "l", "h"]
    assert made.axes.get_title() == "what L and H find"
    made.save(tmp_path / "venn.svg")
    assert (tmp_path / "venn.svg").read_text().startswith("<?xml")


def test_more_sets_are_bars():
    regions = {("a",): 2, ("b",): 1, ("a", "c"): 1}
    axes = overlap_plot([("first 10", Overlap(("a", "b", "c"), regions))]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a ∩ c", "a", "b"]
    assert [bar.get_width() for bar in axes.patches] == [0.25, 0.5, 0.25]


def test_names_are_shown_as_they_are(tmp_path):
    """In circles and bars, in the legend too, whatever they begin with."""
    two, three = Overlap(("a$^$", "_b"), {("_b",): 1}), Overlap(("a$^$", "_b", "c"), {("a$^$", "_b"): 1})
    overlap_plot([("$^$", two)]).save(tmp_path / "circles.svg")
    made = overlap_plot([("_one, first 10", three), ("first 100", three)])
    made.save(tmp_path / "bars.svg")
    texts = [text.get_text() for text in made.axes.get_legend().get_texts()]
    assert texts == ["_one, first 10", "first 100"]


def test_nothing_is_not_drawn():
    with pytest.raises(ConfigError, match="all sets are empty"):
        overlap_plot([("first 10", Overlap(("a", "b"), {}))])


def test_that_nobody_answers_a_query_is_a_finding():
    circles = overlap_plot([("first 10", Overlap(("a", "b"), {}, 4))], of_universe=True).axes
    assert "in none: 100.0%" in [text.get_text() for text in circles.texts]
    bars = overlap_plot([("first 10", Overlap(("a", "b", "c"), {}, 4))], of_universe=True).axes
    assert [label.get_text() for label in bars.get_yticklabels()] == ["none"]
    assert [bar.get_width() for bar in bars.patches] == [1]


def test_shares_of_all_queries_as_in_figure_1():
    """The paper's first diagram: 15.2 % D alone, 32.4 % both, 5.9 % S alone, 46.5 % nobody."""
    overlap = Overlap(("S", "D"), {("D",): 15.2, ("S", "D"): 32.4, ("S",): 5.9}, 100)
    texts = [t.get_text() for t in overlap_plot([("a", overlap)], of_universe=True).axes.texts]
    assert texts[:5] == ["5.9%", "15.2%", "32.4%", "a", "in none: 46.5%"]
    assert texts[5:] == ["S", "RoC 0.154", "D", "RoC 0.319"]
    regions = {("a",): 2, ("b",): 1, ("a", "c"): 1}
    axes = overlap_plot([("x", Overlap(("a", "b", "c"), regions, 8))], of_universe=True).axes
    assert [bar.get_width() for bar in axes.patches] == [0.125, 0.25, 0.125, 0.5]
    empty = Overlap(("D", "S"), {("S",): 1}, 2)
    assert "RoC –" in [t.get_text() for t in overlap_plot([("x", empty)], of_universe=True).axes.texts]
