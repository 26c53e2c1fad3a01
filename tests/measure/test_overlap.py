"""The arithmetic of overlaps, against loops over the elements and the paper's figures."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.data import read_qrels
from counterpoint.errors import ConfigError
from counterpoint.measure import Overlap, evaluate, share_of
from counterpoint.search import Run

NAMES = ("a", "b", "c")


@given(sets=st.lists(st.frozensets(st.integers(0, 12)), min_size=2, max_size=3), spare=st.integers(0, 4))
def test_sizes_are_those_of_loops(sets, spare):
    members = dict(zip(NAMES, sets, strict=False))
    everything = [x for x in range(13) if any(x in found for found in sets)]
    universe = len(everything) + spare
    overlap = Overlap.of(members, universe)
    assert overlap.union == len(everything)
    assert overlap.several == len([x for x in everything if sum(x in found for found in sets) > 1])
    assert sum(overlap.regions.values()) == len(everything) and all(overlap.regions.values())
    lengths = [len(region) for region in overlap.regions]
    assert lengths == sorted(lengths)
    if universe:
        assert overlap.failure == pytest.approx(spare / universe)
        assert overlap.share("a") == len(sets[0]) / universe
    else:
        assert math.isnan(overlap.failure) and math.isnan(overlap.share("a"))
    for first, d in members.items():
        assert overlap.size(first) == len(d)
        others = [found for name, found in members.items() if name != first]
        assert overlap.only(first) == len([x for x in d if not any(x in found for found in others)])
        for second, s in members.items():
            alone = [x for x in d if x not in s]
            assert overlap.both(first, second) == len([x for x in d if x in s])
            assert overlap.without(first, second) == len(alone)
            if d:
                assert overlap.complementarity(first, second) == len(alone) / len(d)
            else:
                assert math.isnan(overlap.complementarity(first, second))


def test_roc_of_the_worked_example(golden):
    case = golden("roc")
    inputs, expected = case["inputs"], case["expected"]
    overlap = Overlap.of({"D": set(inputs["D"]), "S": set(inputs["S"])}, inputs["U"])
    assert overlap.complementarity("D", "S") == pytest.approx(expected["roc"], abs=case["tol"])
    assert overlap.union == expected["union"]
    assert overlap.failure == pytest.approx(expected["failure"], abs=case["tol"])
    assert overlap.both("D", "S") / overlap.union == expected["jaccard_not_roc"]


def test_figure_1_of_the_paper(golden):
    """Regions in percent of all questions, as the figure gives them."""
    case = golden("roc_fig1")
    expected, tolerance = case["expected"], case["tol"]
    for name in "ab":
        d, alone, fail = (case["inputs"][name][key] for key in ("D", "D_minus_S", "fail"))
        regions = {("D",): alone, ("D", "S"): d - alone, ("S",): 100 - fail - d}
        overlap = Overlap(("D", "S"), regions, 100)
        assert overlap.complementarity("D", "S") == pytest.approx(expected[f"roc_{name}"], abs=tolerance)
        assert overlap.size("S") == pytest.approx(expected[f"S_{name}"], abs=tolerance)
        assert overlap.failure == pytest.approx(fail / 100, abs=tolerance)
        if name == "a":
            apart = Overlap(("D", "S"), {("D",): d, ("S",): overlap.size("S")}, 100)
            assert 100 * apart.failure == pytest.approx(expected["fail_c"], abs=tolerance)
            assert apart.complementarity("D", "S") == 1


RUNS = {
    "dense": Run({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"x": 1.0}, "unjudged": {"a": 1.0}}),
    "sparse": Run({"q1": {"d": 3.0, "b": 2.0, "a": 1.0}, "q3": {"z": 1.0}}),
}
QRELS = {"q1": {"a": 1, "b": 2, "d": 1, "e": 1}, "q2": {"x": 1}, "q3": {"y": 1}, "q4": {"z": 0}}


def test_what_runs_share():
    """By hand: the first two documents of four judged queries, of which q4 has none that is relevant."""
    shared = share_of(RUNS, QRELS, 2)
    assert shared.found.regions == {("dense",): 2, ("dense", "sparse"): 1, ("sparse",): 2}
    assert shared.relevant.regions == {("dense",): 2, ("dense", "sparse"): 1, ("sparse",): 1}
    assert shared.relevant.universe == 6
    assert shared.answered.regions == {("dense",): 1, ("dense", "sparse"): 1}
    assert (shared.answered.universe, shared.answered.failure) == (3, pytest.approx(1 / 3))
    assert shared.answered.complementarity("dense", "sparse") == 0.5
    assert shared.answered.complementarity("sparse", "dense") == 0
    assert shared.recall == {"dense": pytest.approx((2 / 4 + 1) / 3), "sparse": pytest.approx((2 / 4) / 3)}
    assert shared.union_recall == pytest.approx((3 / 4 + 1) / 3)
    assert {query: dict(found.regions) for query, found in shared.per_query.items()} == {
        "q1": {("dense",): 1, ("sparse",): 1, ("dense", "sparse"): 1}, "q2": {("dense",): 1}, "q3": {},
    }  # fmt: skip
    assert shared.per_query["q1"].universe == 4 and math.isnan(
        shared.per_query["q3"].complementarity("dense", "sparse")
    )
    strict = share_of(RUNS, QRELS, 2, relevant_from=2)
    assert strict.answered.universe == 1 and strict.relevant.regions == {("dense", "sparse"): 1}


def test_queries_may_count_without_a_known_relevant_document():
    """As with answers, which are known of retrieved documents only: q4 and q5 are failures."""
    shared = share_of(RUNS, QRELS, 2, queries=["q1", "q2", "q4", "q5"])
    assert shared.answered.regions == {("dense",): 1, ("dense", "sparse"): 1}
    assert (shared.answered.universe, shared.answered.failure) == (4, 0.5)
    assert shared.answered.share("sparse") == 0.25
    assert shared.recall["dense"] == pytest.approx((2 / 4 + 1) / 4)
    assert share_of(RUNS, QRELS, 2, queries=["q1", "q2", "q4", "q5", "q1"]) == shared
    data = share_of({"a": Run({}), "b": RUNS["dense"]}, QRELS, 1).to_dict()
    assert data["answered"]["pairs"][0]["roc"] is None and data["found"]["failure"] is None


def test_what_cannot_be_compared():
    with pytest.raises(ConfigError, match="at least two runs, found dense"):
        share_of({"dense": RUNS["dense"]}, QRELS, 2)
    with pytest.raises(ConfigError, match="k must be at least 1, found 0"):
        share_of(RUNS, QRELS, 0)
    with pytest.raises(ConfigError, match="relevant_from must be a grade of at least 1, found 0"):
        share_of(RUNS, QRELS, 2, relevant_from=0)
    with pytest.raises(ConfigError, match="no query has a document with a grade of 3"):
        share_of(RUNS, QRELS, 2, relevant_from=3)


@pytest.mark.shared
def test_real_runs_agree_with_a_count_by_loops(shared):
    folder = shared / "data" / "runs"
    qrels = read_qrels(folder / "qrels.dl19-passage.txt")
    runs = {name: Run.read(folder / f"{name}.dl19.trec.gz") for name in ("bm25", "tas-b")}
    found = share_of(runs, qrels, 10, relevant_from=2)
    regions, answered, total = {"bm25": 0, "tas-b": 0, "both": 0}, {"bm25": [], "tas-b": []}, 0
    for query, grades in qrels.items():
        if not any(grade >= 2 for grade in grades.values()):
            continue
        total += 1
        first = {name: [d for d, _ in run[query]][:10] for name, run in runs.items()}
        for name, documents in first.items():
            other = first["tas-b" if name == "bm25" else "bm25"]
            regions[name] += sum(d not in other for d in documents)
            if any(grades.get(d, 0) >= 2 for d in documents):
                answered[name].append(query)
        regions["both"] += sum(d in first["tas-b"] for d in first["bm25"])
    assert total == found.answered.universe == 43
    assert dict(found.found.regions) == {
        ("bm25",): regions["bm25"], ("tas-b",): regions["tas-b"], ("bm25", "tas-b"): regions["both"],
    }  # fmt: skip
    missed = [q for q in answered["tas-b"] if q not in answered["bm25"]]
    assert found.answered.complementarity("tas-b", "bm25") == len(missed) / len(answered["tas-b"]) > 0
    for name, run in runs.items():
        assert found.recall[name] == pytest.approx(
            evaluate(run, qrels, ["R(rel=2)@10"]).measures["R(rel=2)@10"]
        )
