"""Means and wins over slices of the queries, against loops."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.data import read_qrels
from counterpoint.errors import ConfigError
from counterpoint.measure import Slicing, evaluate, means_over, slice_by_rank, slice_by_width, wins_over
from counterpoint.measure.slices import with_all
from counterpoint.search import Run

RANKS = st.sampled_from([0.0, 1 / 3, 1 / 2, 1.0])


@given(st.lists(st.tuples(RANKS, RANKS, RANKS), min_size=2, max_size=12))
def test_means_and_wins_by_loops(rows):
    systems = {
        name: {f"q{at}": row[column] for at, row in enumerate(rows)} for column, name in enumerate("sdh")
    }
    slices = with_all(systems["s"], slice_by_rank(systems["s"], "halves"))
    assert list(slices) == ["all", "easy", "hard"] and len(slices["all"]) == len(rows)
    means, wins = means_over(systems, slices), wins_over(systems, "s", slices)
    assert list(wins) == ["d", "h"]
    for label, queries in slices.items():
        for name, values in systems.items():
            total = 0.0
            for query in queries:
                total += values[query]
            assert means[label][name] == pytest.approx(total / len(queries))
            if name != "s":
                better = equal = worse = 0
                for query in queries:
                    better += values[query] > systems["s"][query]
                    equal += values[query] == systems["s"][query]
                    worse += values[query] < systems["s"][query]
                assert wins[name][label] == (better, equal, worse)


def test_a_baseline_that_is_not_there():
    with pytest.raises(ConfigError, match="no system is called 'bm25'; there are a"):
        wins_over({"a": {"q": 1.0}}, "bm25", {"all": ["q"]})


@given(
    st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.floats(0, 500)), max_size=20),
    st.integers(1, 60),
)
def test_bins_of_equal_width(lengths, width):
    """A length of (n·width, (n + 1)·width] belongs to bin n, one of 0 to the first."""
    slices = slice_by_width(lengths, "length", width).slices
    for query, length in lengths.items():
        label = "(none)"
        if length is not None:
            at = max(1, math.ceil(length / width))
            label = f"to {width}" if at == 1 else f"above {(at - 1) * width} to {at * width}"
        assert [name for name, queries in slices.items() if query in queries] == [label]


def test_widths_below_one():
    with pytest.raises(ConfigError, match="the width of bins must be at least 1, found 0"):
        slice_by_width({"a": 3}, "length", 0)


def test_no_slicing_leaves_all():
    assert with_all(["a", "b"], None) == {"all": ("a", "b")}
    assert with_all(["a"], Slicing("x", {"y": ("a",)})) == {"all": ("a",), "y": ("a",)}


@pytest.mark.shared
@pytest.mark.parametrize("year", ["19", "20"])
def test_the_hard_half_of_real_runs(shared, year):
    """RoC's figure 4 for TAS-B: reciprocal ranks, halves and wins counted from the files."""
    folder = shared / "data" / "runs"
    qrels = read_qrels(folder / f"qrels.dl{year}-passage.txt")
    runs = {name: Run.read(folder / f"{name}.dl{year}.trec.gz") for name in ("bm25", "tas-b")}
    measured = {name: evaluate(run, qrels, ["RR(rel=2)@10"]).per_query for name, run in runs.items()}
    systems = {name: values["RR(rel=2)@10"] for name, values in measured.items()}
    ranks = {}
    for name, run in runs.items():
        for query, grades in qrels.items():
            ranks[name, query] = math.inf
            for rank, (document, _) in enumerate(run[query] if query in run else [], 1):
                if rank <= 10 and grades.get(document, 0) >= 2:
                    ranks[name, query] = min(ranks[name, query], rank)
    order = sorted(qrels, key=lambda query: (ranks["bm25", query], query))
    easy, hard = order[: len(order) // 2], order[len(order) // 2 :]
    slices = with_all(qrels, slice_by_rank(systems["bm25"], "halves"))
    assert (list(slices["easy"]), list(slices["hard"])) == (easy, hard)
    for label, queries in (("all", list(qrels)), ("easy", easy), ("hard", hard)):
        better = sum(ranks["tas-b", query] < ranks["bm25", query] for query in queries)
        worse = sum(ranks["tas-b", query] > ranks["bm25", query] for query in queries)
        expected = (better, len(queries) - better - worse, worse)
        assert wins_over(systems, "bm25", slices)["tas-b"][label] == expected
