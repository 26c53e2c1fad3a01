"""The forest plot shows the numbers of the synthesis, where they belong."""

import pytest

from counterpoint.errors import DataError
from counterpoint.measure import compare, synthesise
from counterpoint.plots import forest_plot


def made(collection, shift):
    low = {f"q{at}": 0.1 * (at % 4) for at in range(12)}
    high = {query: value + shift + 0.05 * (int(query[1:]) % 3) for query, value in low.items()}
    return compare(collection, "nDCG@10", {"bm25": [low], "ours": [high]})


def test_every_number_and_diamond_is_drawn():
    (synthesis,) = synthesise([made("one", 0.1), made("two", -0.02)])
    axes = forest_plot([synthesis]).axes
    texts = [text.get_text() for text in axes.texts]
    assert "ours (treatment) against bm25 (control), nDCG@10" in texts
    assert "one (12 queries)" in texts and "two (12 queries)" in texts
    summary = synthesis.summary
    shown = f"{summary.estimate:.2f} [{summary.interval.low:.2f}, {summary.interval.high:.2f}]"
    assert shown.replace("-", "−") in texts
    (diamond,) = axes.patches
    assert diamond.get_xy()[:, 0].min() == pytest.approx(summary.interval.low)
    assert diamond.get_xy()[:, 0].max() == pytest.approx(summary.interval.high)
    lines = [line.get_xdata() for line in axes.lines]
    for effect in synthesis.effects:
        assert any(tuple(x) == pytest.approx(effect.interval()) for x in lines if len(x) == 2)
        assert any(x[0] == pytest.approx(effect.estimate) for x in lines if len(x) == 1)


def test_rows_do_not_overlap():
    (synthesis,) = synthesise([made("one", 0.1), made("two", -0.02), made("three", 0.3)])
    axes = forest_plot([synthesis, synthesis]).axes
    heights = sorted({round(text.get_position()[1], 3) for text in axes.texts})
    assert min(b - a for a, b in zip(heights, heights[1:], strict=False)) >= 1
    low, high = axes.get_ylim()
    assert low < heights[0] and heights[-1] < high


def test_names_are_shown_as_they_are():
    (synthesis,) = synthesise([made("a$^$", 0.1), made("_two", -0.02)])
    assert forest_plot([synthesis]).svg().startswith("<svg")


def test_nothing_to_draw_is_said():
    with pytest.raises(DataError, match="two systems on two collections"):
        forest_plot([])
