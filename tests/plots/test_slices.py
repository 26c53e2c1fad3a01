"""Bars of wins and lines along lengths: what is drawn is what was counted."""

import pytest

from counterpoint.errors import ConfigError
from counterpoint.measure import WinTieLoss
from counterpoint.plots.slices import lengths_plot, wins_plot


def test_wins_are_stretches_of_one_bar(tmp_path):
    made = wins_plot({"d, all": WinTieLoss(2, 1, 1), "d, hard": WinTieLoss(0, 0, 5)}, "RR@10 against s")
    widths = [bar.get_width() for bar in made.axes.patches]
    assert widths == [0.0, 0.0, 1.0, 0.5, 0.25, 0.25]
    assert [bar.get_x() for bar in made.axes.patches][3:] == [0.0, 0.5, 0.75]
    assert [label.get_text() for label in made.axes.get_yticklabels()] == ["d, hard", "d, all"]
    assert [text.get_text() for text in made.axes.texts] == ["100.0%", "50.0%", "25.0%", "25.0%"]
    assert [text.get_text() for text in made.axes.get_legend().get_texts()] == ["better", "equal", "worse"]
    made.save(tmp_path / "wins.svg")
    assert (tmp_path / "wins.svg").read_text().startswith("<?xml")


def test_lines_along_lengths_share_their_bins():
    lines = {
        "one": {"to 40": 0.5, "above 80 to 120": 0.25},
        "two": {"to 40": 0.75, "above 40 to 80": 0.5, "above 80 to 120": 0.0},
    }
    axes = lengths_plot(lines, "AP").axes
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert ticks == ["to 40", "above 40 to 80", "above 80 to 120"]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines] == [
        ([0, 2], [0.5, 0.25]), ([0, 1, 2], [0.75, 0.5, 0.0]),
    ]  # fmt: skip
    assert axes.get_ylabel() == "AP"


def test_every_line_is_in_the_legend(tmp_path):
    made = lengths_plot({"_one": {"to 40": 0.5}, "two": {"to 40": 0.25}, "a$^$": {"to 40": 0.1}}, "AP")
    assert [text.get_text() for text in made.axes.get_legend().get_texts()] == ["_one", "two", "a$^$"]
    made.save(tmp_path / "lengths.svg")
    wins_plot({"a$^$": WinTieLoss(2, 1, 1)}, "against $_$").save(tmp_path / "wins.svg")


def test_nothing_is_not_drawn():
    with pytest.raises(ConfigError, match="no system was compared"):
        wins_plot({})
    with pytest.raises(ConfigError, match="no query has a relevant document"):
        lengths_plot({"one": {}}, "AP")
