"""What the benchmark of RoC makes of figures: hand-made ones, of which it is plain what they show."""

import math

import pytest
from benchmarks.papers.roc_claims import (
    adverse,
    by_resampling,
    complementarity,
    outcome,
    pairs,
    shares,
    verdicts,
)
from benchmarks.papers.roc_rows import CLEAR, EMBEDDING, NAIVE, OURS
from benchmarks.papers.roc_statistics import draws, rank_correlation, resampled_means, resampled_shares

QUERIES = range(100)
BM25 = range(50)  # what it answers
SAME = range(60)  # what a row answers unless said otherwise: 10 queries that BM25 does not


def evaluated(answered):
    """What is saved of rows that answer these queries, with their second document and no other."""

    def values(queries):
        return {"RR@10": {query: 0.5 * (query in queries) for query in QUERIES}}

    shared = {}
    for row, queries in answered.items():
        alone, both = len({*queries} - {*BM25}), len({*queries} & {*BM25})
        pair = {"first_without_second": alone, "both": both, "roc": alone / (alone + both)}
        counts = {"universe": 100, "union": 50 + alone, "pairs": [pair]}
        shared[row] = {"answered": counts, "relevant": counts}
    systems = {name: values(queries) for name, queries in {"BM25": BM25, **answered}.items()}
    return {"collections": {"c": {"systems": systems, "shared": shared}}}


def claims_of(**answered):
    """Claim to what is said of it; `ours` is I + E."""
    rows = {OURS if name == "ours" else name: queries for name, queries in answered.items()}
    found = evaluated({row: rows.get(row, SAME) for row in EMBEDDING})
    return {claim: said for claim, said, _ in complementarity(found, ["c"])}


# -- verdicts ----------------------------------------------------------------------------------------------


def test_a_claim_has_one_of_three_outcomes():
    assert [outcome(True, True), outcome(True, False)] == ["holds", "not shown"]
    assert [outcome(False, True), outcome(False, False)] == ["does not hold"] * 2
    assert outcome(None, True) == "not defined"


def test_a_claim_holds_from_95_of_100_resampled_sets():
    for times, said in ((95, "holds"), (94, "not shown")):
        assert by_resampling("c", True, [True] * times + [False] * (100 - times), "")[1] == said


def test_one_query_more_is_not_shown_and_forty_hold():
    """One query is missing from (99/100)¹⁰⁰ = 37 % of the resampled sets."""
    claim = "E raises RoC@10 over naive and CLEAR"
    assert claims_of(E=range(61))[claim] == "not shown"
    assert claims_of(E=range(100))[claim] == "holds"
    assert claims_of(E=range(60))[claim] == "does not hold"
    assert claims_of(E=range(55))[claim] == "does not hold"


def test_all_claims_of_complementarity_can_hold():
    """E gives up 30 queries that BM25 has, I finds 20 that it has not, ours 40, and CLEAR 10 of each."""
    said = claims_of(
        dense=range(20, 60), CLEAR=range(10, 70), E=range(50, 60), I=range(20, 80), ours=range(50, 100)
    )
    rise = {"E raises RoC@10 over naive and CLEAR", "I raises RoC@10 over naive and CLEAR"}
    sets = {"|D ∩ S| falls by E, against naive", "|D − S| rises by I, against naive"}
    clear = {"CLEAR raises |D − S| and |D ∩ S|, against naive", "I + E fails less than CLEAR"}
    assert all(said[claim] == "holds" for claim in rise | sets | clear)
    assert said["I + E has the highest RoC@10"] == "does not hold"  # 1, as E has
    assert said["I + E has the highest RoC@1"] == "not defined"  # nobody answers with the first document


def test_table_6_goes_by_bonferroni_over_both_models():
    """t = 3.5 with 3 degrees of freedom: a table has p = .05 at 3.18 and .025 at 4.18."""

    def systems(*models):
        gain = {model + " + I": {"AP": {0: 0.505, 1: 1.495, 2: 0.505, 3: 1.495}} for model in models}
        return {**{model: {"AP": dict.fromkeys(range(4), 0.0)} for model in models}, **gain}

    alone, both = systems("SparTerm"), systems("SparTerm", "interactive BERT")
    assert [said for _, said, _ in pairs(alone)] == ["holds"]
    assert [said for _, said, _ in pairs(both)] == ["not shown", "not shown"]
    both["SparTerm + I"], both["SparTerm"] = both["SparTerm"], both["SparTerm + I"]
    assert [said for _, said, _ in pairs(both)] == ["does not hold", "not shown"]


def adverse_of(words, gains):
    """What is said of figures 4 to 6 where ours gains so much over the others, query by query."""
    values = {"BM25": [0.4] * 60, f"BM25 + {NAIVE}": [0.4] * 60, f"BM25 + {CLEAR}": [0.4] * 60}
    values[f"BM25 + {OURS}"] = [0.4 + gain for gain in gains]
    systems = {name: {m: dict(enumerate(v)) for m in ("AP", "RR@10")} for name, v in values.items()}
    fallen = {name: {"RR@10": dict.fromkeys(range(60), 0.2)} for name in systems}
    fallen[f"BM25 + {OURS}"] = {"RR@10": dict.fromkeys(range(60), 0.3)}
    measured = {"systems": systems, "words": dict(enumerate(words)), "adversarial": {"systems": fallen}}
    said = [said for _, said, _ in adverse({"collections": {"c": measured}}, ["c"])]
    return dict(zip((4, 5, 6), said, strict=True))


def test_adverse_scenarios():
    three, one = [20, 50, 90] * 20, [20] * 60
    assert adverse_of(three, [0.05] * 60) == {4: "holds", 5: "holds", 6: "holds"}
    assert adverse_of(three, [0.05] + [0.0] * 59)[6] == "does not hold"
    assert adverse_of(three, [0.3, 0.3, 0.3, -0.29, -0.29, -0.29] * 10)[6] == "not shown"
    assert adverse_of(one, [0.05] * 60)[6] == "too few"
    assert adverse_of([20] * 21 + [50] * 20 + [90] * 19, [0.05] * 60)[6] == "too few"


def test_rows_that_are_missing_are_named(capsys):
    found = {"trained on": "c", "weights": {"dense": {}, "E": {}}, "collections": {"c": {}}}
    verdicts(found)
    assert "there is no CLEAR, I, I + E." in capsys.readouterr().out


# -- figures and statistics --------------------------------------------------------------------------------


def test_shares_are_means_over_collections():
    def collection(alone, both, failures, documents, ranks):
        pair = {"first_without_second": alone, "both": both, "roc": alone / (alone + both)}
        answered = {"universe": 10, "union": 10 - failures, "pairs": [pair]}
        shared = {"answered": answered, "relevant": {"pairs": [{"roc": documents}]}}
        systems = {name: {"RR@10": dict(enumerate(values))} for name, values in ranks.items()}
        return {"shared": {"E": shared}, "systems": systems}

    first = collection(2, 3, 1, 0.25, {"E": [1, 1, 0.5, 1], "BM25": [1, 0, 1, 0.5]})  # two of three are new
    second = collection(6, 2, 0, None, {"E": [0.5, 0, 0, 0], "BM25": [1, 1, 1, 1]})  # none in front
    found = {"collections": {"a": first, "b": second}}
    assert shares(found, ["a"], "E") == pytest.approx([20, 30, 10, 0.4, 0.25, 2 / 3])
    assert shares(found, ["a", "b"], "E") == pytest.approx([40, 25, 5, 0.575, 0.25, 2 / 3])
    assert shares(found, ["b"], "E") == pytest.approx([60, 20, 0, 0.75, math.nan, math.nan], nan_ok=True)
    assert shares(found, ["a"], "I") is None


def test_resampled_shares_are_counts_of_the_draws():
    """Queries that only D, both, only S and none answers; by the first document D answers the first alone."""
    ranks = {"E": [1, 0.5, 0, 0], "BM25": [0, 0.1, 1, 0]}
    systems = {name: {"RR@10": dict(enumerate(values))} for name, values in ranks.items()}
    found = {"collections": {"c": {"systems": systems}}}
    ten, one = (resampled_shares(found, ["c"], "E", k) for k in (10, 1))
    for at, (d, both, s, none) in enumerate(draws(4)[:50]):
        assert d + both + s + none == 4
        roc = d / (d + both) if d + both else math.nan
        assert ten[:, at] == pytest.approx([25 * d, 25 * both, 25 * none, roc], nan_ok=True)
        assert one[:, at] == pytest.approx([25 * d, 0, 25 * (both + none), 1 if d else math.nan], nan_ok=True)
    assert ten[0].mean() == pytest.approx(25, abs=2)  # four standard errors of 2,000 draws
    assert resampled_means([1, 0, 0, 0])[:50] == pytest.approx(draws(4)[:50, 0] / 4)


def test_rank_correlation():
    """Of the six orders of three one has ρ = 1, and two have ρ = 1/2."""
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == pytest.approx((1, 1 / 6, 3))
    assert rank_correlation([1, 2, 3], [10, 30, 20]) == pytest.approx((1 / 2, 3 / 6, 3))
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx((-1, 1, 3))
    assert rank_correlation([1, math.nan, 2, 3], [10, 40, 30, 20]) == pytest.approx((1 / 2, 3 / 6, 3))
    for first, second in (([1, 1], [1, 2]), ([math.nan, 1], [1, 2])):
        assert all(map(math.isnan, rank_correlation(first, second)[:2]))
    assert rank_correlation([math.nan], [1])[2] == 0
