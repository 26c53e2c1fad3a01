"""Rows of several seeds: intervals over queries and over seeds."""

import pytest
from benchmarks.papers.seeds import differences, spread, spread_with_interval, t_interval


def test_the_interval_over_seeds_is_student_s():
    assert t_interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.4841, 2 + 2.4841), abs=1e-4)


def test_a_spread_is_the_mean_and_the_ends():
    assert spread([0.5, 0.25, 0.75]) == "0.500 (0.250 to 0.750)"
    assert spread([50, 60], 1) == "55.0 (50.0 to 60.0)"


def test_an_interval_needs_several_seeds():
    assert spread_with_interval([1.0, 2.0, 3.0], 1) == "2.0 (1.0 to 3.0) [-0.5, 4.5]"
    assert spread_with_interval([1.0], 1) == "1.0 (1.0 to 1.0)"


def test_seeds_that_only_one_row_has_are_left_out():
    found = {("a", 1): {"q": 0.5, "r": 0.7}, ("b", 1): {"q": 0.25, "r": 0.25}, ("a", 2): {"q": 1.0, "r": 1.0}}
    (name, line), *others = differences(found, [("a", "b")]).items()
    assert not others and name == "a − b; seed 1" and line["over"] == "2 queries"
    assert line["difference"] == pytest.approx(0.35)
