import json

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measure.test_evaluate import BINARY, NAMES, QRELS, RUNS

from counterpoint.errors import ConfigError
from counterpoint.measure import condense, evaluate, parse_measure, with_judging
from counterpoint.search import Run


def condensed(name):
    return with_judging([name], condensed=True)[0]


THEIRS = [
    name
    for name in [*NAMES, "P@1", "nDCG(gains={1:5})@3"]
    if "judged_only" in ir_measures.parse_measure(name).SUPPORTED_PARAMS
]


def test_condensing_of_ir_measures_is_compared_for_every_measure_that_has_it():
    assert {parse_measure(name).NAME for name in THEIRS} >= {"nDCG", "AP", "P", "R", "RR", "Rprec", "Success"}


@settings(deadline=None, max_examples=50)
@given(RUNS, QRELS)
def test_condensed_values_are_those_of_ir_measures(results, qrels):
    # where something judged was found: pytrec-eval cannot be given an empty result
    found = {query: docs for query, docs in results.items() if docs.keys() & qrels.get(query, {}).keys()}
    names = [condensed(name) for name in THEIRS]
    report = evaluate(Run(results), qrels, names)
    for name in names if found else ():
        provider = ir_measures.pytrec_eval.evaluator([ir_measures.parse_measure(name)], qrels)
        for query, _, value in provider.iter_calc(found):
            if query in found:  # it adds queries that have no judgement, too
                assert report.per_query[name][query] == value
    for query in {query for query, grades in qrels.items() if grades} - found.keys():
        assert all(report.per_query[name][query] == 0 for name in names)


@settings(deadline=None, max_examples=50)
@given(
    RUNS,
    st.dictionaries(
        st.sampled_from(["q1", "q2"]),
        st.dictionaries(st.sampled_from(["d1", "d2", "d3", "d4", "d5"]), st.integers(-1, 3), min_size=1),
        min_size=1,
    ),
)
def test_any_measure_condensed_is_the_measure_of_the_run_without_unjudged_documents(results, qrels):
    names = [*NAMES, "RR@2", "Compat(p=0.9)"]
    left = {
        query: {d: score for d, score in docs.items() if qrels.get(query, {}).get(d, -1) >= 0}
        for query, docs in results.items()
    }
    whole, short = evaluate(Run(results), qrels, [*map(condensed, names)]), evaluate(Run(left), qrels, names)
    for name in names:
        assert whole.per_query[condensed(name)] == short.per_query[name]
    assert condense(Run(results), qrels) == Run(left)


@settings(deadline=None, max_examples=50)
@given(RUNS, QRELS)
def test_bpref_needs_no_condensing(results, qrels):
    plain, short = "Bpref", "Bpref(judged_only=True)"
    report = evaluate(Run(results), qrels, [plain, short])
    assert report.per_query[plain] == report.per_query[short]


def test_bpref_by_hand():
    """Buckley and Voorhees (2004) as trec_eval has it: 1/R Σ 1 - min(n above, R) / min(N, R)."""
    run = Run({"q": {d: -float(rank) for rank, d in enumerate(["a", "unjudged", "x", "b", "y"])}})
    qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}}  # R = 3, N = 2
    first, second, not_found = 1.0, 1 - 1 / 2, 0.0
    assert evaluate(run, qrels, ["Bpref"]).measures["Bpref"] == pytest.approx(
        (first + second + not_found) / 3
    )


def test_judged_share_by_hand():
    run = Run({"q1": {"u": 4.0, "bad": 3.0, "v": 2.0, "negative": 1.0}, "q2": {"good": 1.0}})
    qrels = {"q1": {"bad": 0, "negative": -1, "good": 1}, "q2": {"good": 1}, "q3": {"good": 1}}
    report = evaluate(run, qrels, ["Judged@2", "Judged@10"])
    assert report.per_query["Judged@2"] == {"q1": 1 / 2, "q2": 1, "q3": 0}
    assert report.per_query["Judged@10"] == {"q1": 2 / 4, "q2": 1, "q3": 0}  # of what was found


def test_with_judging():
    names = [
        "nDCG@10",
        "R@100",
        "map",
        "RR@10",
        "P(rel=3)@5",
        "Bpref",
        "Judged@10",
        "RBP",
        "NumRet",
        "ERR@20",
    ]
    assert with_judging(names) == names
    assert with_judging(names, relevant_from=2) == [
        *("nDCG@10", "R(rel=2)@100", "AP(rel=2)", "RR(rel=2)@10", "P(rel=3)@5", "Bpref(rel=2)", "Judged@10"),
        *("RBP", "NumRet", "ERR@20"),
    ]
    assert with_judging(names[:4], condensed=True, relevant_from=2) == [
        "nDCG(judged_only=True)@10",
        "R(rel=2,judged_only=True)@100",
        "AP(rel=2,judged_only=True)",
        "RR(rel=2,judged_only=True)@10",
    ]
    assert with_judging(["AP(judged_only=False)", "Judged@5"], condensed=True) == [
        "AP(judged_only=False)",
        "Judged@5",
    ]
    assert with_judging(BINARY, relevant_from=1) == [str(parse_measure(name)) for name in BINARY]
    with pytest.raises(ConfigError, match="a grade of at least 1, found 0"):
        with_judging(["AP"], relevant_from=0)
    with pytest.raises(ConfigError, match="did you mean 'nDCG@10'"):
        with_judging(["nDGC@10"])


@pytest.mark.shared
def test_golden_condensed_list(shared):
    cases = json.loads((shared / "golden" / "golden.json").read_text(encoding="utf-8"))["cases"]
    case = next(case for case in cases if case["id"] == "ndcg_condensed")
    expected, tolerance = case["expected"], case["tol"]
    run = Run({"q": {d: -float(rank) for rank, d in enumerate(case["inputs"]["ranking"])}})
    qrels = {"q": case["inputs"]["qrels"]}
    names = ["nDCG@10", "nDCG@3", "nDCG(judged_only=True)@10", "nDCG(judged_only=True)@3"]
    found = evaluate(run, qrels, names).measures
    for name, key in zip(names, ["full_10", "full_3", "condensed_10", "condense_then_cut_3"], strict=True):
        assert found[name] == pytest.approx(expected[key], abs=tolerance)
    wrong = evaluate(run.top(3), qrels, names[3:]).measures[names[3]]
    assert wrong == pytest.approx(expected["cut_then_condense_3_WRONG"], abs=tolerance)
