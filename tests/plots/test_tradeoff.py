"""The front is what no point beats, and a drawing names every point."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import ConfigError
from counterpoint.plots import PALETTE
from counterpoint.plots.tradeoff import Point, pareto_front, tradeoff


def point(cost, value, label="", colour="m", marker="w"):
    return Point(cost, value, label, colour, marker)


def test_the_front_by_hand():
    cheap, better, best = point(1, 0.2), point(3, 0.5), point(9, 0.6)
    beaten = [point(2, 0.2), point(3, 0.4), point(4, 0.5), point(20, 0.1)]
    twice = point(3, 0.5, "as good for as much")
    assert pareto_front([best, *beaten, cheap, better, twice]) == [cheap, better, twice, best]
    assert pareto_front([]) == []


costs = st.integers(1, 5)


@given(st.lists(st.builds(point, costs, costs), min_size=1))
def test_no_point_beats_the_front_and_something_on_it_is_no_worse_than_any(points):
    front = pareto_front(points)
    for one in points:
        assert any(kept.cost <= one.cost and kept.value >= one.value for kept in front)
        beaten = any(
            (other.cost < one.cost and other.value >= one.value)
            or (other.cost <= one.cost and other.value > one.value)
            for other in points
        )
        assert (one in front) == (not beaten)


POINTS = [
    point(100, 0.3, "1", "small", "dense"),
    point(100, 0.3, "2", "large", "dense"),
    point(5000, 0.5, "3", "small", "words"),
    point(5100, 0.5, "4", "large", "words"),
]


def drawn(points, **rest):
    made = tradeoff(points, cost="bytes", value="nDCG@10", **rest)
    texts = {text.get_text(): text for text in made.axes.texts}
    legend = made.axes.get_legend()
    looks = {
        text.get_text(): (handle.get_color(), handle.get_marker())
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)
    }
    return made, texts, looks


def test_every_point_is_named_and_labels_do_not_cover_each_other():
    made, texts, looks = drawn(POINTS)
    assert set(texts) == {"1, 2", "3", "4"}  # equal points share a label
    made.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts.values()]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert looks["small"][0] == PALETTE[0] and looks["large"][0] == PALETTE[1]
    assert looks["dense"][1] != looks["words"][1] and "Pareto front" in looks
    assert made.axes.get_xscale() == "log" and made.axes.get_xlabel() == "bytes"


def test_a_name_looks_the_same_in_each_drawing_of_a_series():
    _, _, looks = drawn(POINTS[1:2], among=POINTS)
    assert looks["large"][0] == PALETTE[1] and "small" not in looks and "words" not in looks


def test_names_are_shown_as_they_are():
    made, texts, looks = drawn([point(100, 0.3, "a$^$", "_small", "_words")])
    assert set(texts) == {"a$^$"} and {"_small", "_words"} < looks.keys()
    assert made.svg().startswith("<svg")


def test_ticks_are_plain_numbers():
    made, _, _ = drawn(POINTS)
    made.figure.canvas.draw()
    low, high = made.axes.get_xlim()
    shown = [
        label.get_text()
        for label, at in zip(made.axes.get_xticklabels(), made.axes.get_xticks(), strict=True)
        if low <= at <= high
    ]
    assert shown == ["100", "200", "500", "1,000", "2,000", "5,000"]


def test_it_goes_into_a_page():
    text = drawn(POINTS)[0].svg()
    assert text.startswith("<svg") and len(re.findall("<use|<path", text)) > 10


def test_what_cannot_be_drawn():
    with pytest.raises(ConfigError, match="at least one point"):
        tradeoff([], cost="bytes", value="nDCG@10")
    with pytest.raises(ConfigError, match="needs costs above 0, but '9' has 0"):
        tradeoff([*POINTS, point(0, 0.1, "9")], cost="bytes", value="nDCG@10")
