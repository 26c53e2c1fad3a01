"""Comparisons of systems, their synthesis over collections, on made numbers and on real runs."""

import json
from math import nan, sqrt

import numpy as np
import pytest
from scipy import stats

from counterpoint.data import read_qrels
from counterpoint.errors import ConfigError, DataError
from counterpoint.measure import (
    CompareSettings,
    as_text,
    compare,
    comparison_data,
    comparison_tables,
    evaluate,
    standardised_mean_difference,
    synthesise,
)
from counterpoint.search import Run


def values(numbers):
    return {f"q{at}": float(number) for at, number in enumerate(numbers)}


def made(collection="c", settings=None, *, shift=0.0):
    rng = np.random.default_rng(1)
    base = rng.random(30)
    systems = {
        "low": [values(base - 0.3 + rng.normal(0, 0.05, 30))],
        "middle": [values(base + rng.normal(0, 0.05, 30))],
        "twin": [values(base + rng.normal(0, 0.05, 30))],
        "high": [values(base + 0.3 + shift + rng.normal(0, 0.05, 30))],
    }
    return compare(collection, "nDCG@10", systems, settings)


def test_all_pairs_later_against_earlier():
    comparison = made()
    assert [(pair.treatment, pair.control) for pair in comparison.pairs] == [
        ("middle", "low"), ("twin", "low"), ("high", "low"), ("twin", "middle"), ("high", "middle"),
        ("high", "twin"),
    ]  # fmt: skip
    assert comparison.better_than("high") == ["low", "middle", "twin"]
    assert comparison.better_than("middle") == comparison.better_than("twin") == ["low"]
    assert comparison.better_than("low") == []


def test_a_baseline_is_the_control_of_every_pair():
    comparison = made(settings=CompareSettings(baseline="middle"))
    assert [(pair.treatment, pair.control) for pair in comparison.pairs] == [
        ("low", "middle"), ("twin", "middle"), ("high", "middle"),
    ]  # fmt: skip
    assert comparison.better_than("middle") == ["low"], "the baseline beats what is significantly below it"


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_a_pair_is_what_scipy_says(alternative):
    comparison = made(settings=CompareSettings(alternative=alternative, correction="bonferroni"))
    pair = comparison.pairs[3]
    first, second = (list(comparison.per_query[name].values()) for name in ("twin", "middle"))
    expected = stats.ttest_rel(first, second, alternative=alternative)
    assert pair.outcome == pytest.approx(expected)
    assert pair.corrected == pytest.approx(min(1, 6 * expected.pvalue))
    assert pair.difference == pytest.approx(np.mean(first) - np.mean(second))
    assert pair.counts.wins == sum(a > b for a, b in zip(first, second, strict=True))
    assert pair.effect == standardised_mean_difference(first, second)
    assert pair.interval.low < pair.difference < pair.interval.high


def test_one_sided_tests_find_one_side_only():
    """Nothing is `less` than what it is better than: letters follow the alternative."""
    better = made(settings=CompareSettings(alternative="greater"))
    worse = made(settings=CompareSettings(alternative="less"))
    assert better.better_than("high") == ["low", "middle", "twin"]
    assert all(worse.better_than(name) == [] for name in worse.systems)


def test_randomisation_and_correction_are_taken_as_set():
    plain = made(settings=CompareSettings(test="randomisation", correction="none", resamples=500))
    assert plain.pairs[0].outcome.p_value == plain.pairs[0].corrected == 1 / 501
    holm = made(settings=CompareSettings(test="randomisation", resamples=500))
    assert sorted(pair.corrected for pair in holm.pairs)[0] == pytest.approx(6 / 501)


def test_repeated_runs_are_averaged_and_tested_over_seeds():
    """Isotropic DR, section 5.1.2: one-tailed t-test of equal variance over the values of three seeds."""
    seeds = {
        "old": [values([0.1, 0.2, 0.3]), values([0.2, 0.2, 0.3]), values([0.1, 0.3, 0.3])],
        "new": [values([0.3, 0.4, 0.3]), values([0.2, 0.5, 0.3]), values([0.3, 0.4, 0.4])],
    }
    comparison = compare("c", "m", seeds, CompareSettings(alternative="greater"))
    (pair,) = comparison.pairs
    old = [np.mean(list(run.values())) for run in seeds["old"]]
    new = [np.mean(list(run.values())) for run in seeds["new"]]
    assert pair.seeds == pytest.approx(stats.ttest_ind(new, old, equal_var=True, alternative="greater"))
    assert comparison.per_query["old"]["q1"] == pytest.approx((0.2 + 0.2 + 0.3) / 3)
    assert made().pairs[0].seeds is None


def test_settings_that_cannot_be_are_listed_together():
    with pytest.raises(ConfigError) as caught:
        CompareSettings(test="f", alpha=5, confidence=95, resamples=0)
    for part in ("test must be one of t, randomisation, found 'f'", "alpha", "confidence", "resamples"):
        assert part in str(caught.value)


def test_what_cannot_be_compared_is_refused():
    one = [values([1, 2, 3])]
    with pytest.raises(ConfigError, match="at least two systems, found a"):
        compare("c", "m", {"a": one})
    with pytest.raises(ConfigError, match="no system is called 'z'; there are a, b"):
        compare("c", "m", {"a": one, "b": one}, CompareSettings(baseline="z"))
    with pytest.raises(DataError, match="same queries; 'q3'"):
        compare("c", "m", {"a": one, "b": [values([1, 2, 3, 4])]})
    with pytest.raises(DataError, match="needs queries, but there are none"):
        compare("c", "m", {"a": [{}], "b": [{}]})


@pytest.mark.parametrize("test", ["t", "randomisation"])
@pytest.mark.parametrize("queries, said", [(1, "and there is 1"), (2, "and there are 2")])
def test_too_few_queries_are_counted_and_not_tested(test, queries, said):
    systems = {"a": [values([1, 0][:queries])], "b": [values([0.5, 0][:queries])]}
    found = compare("c", "m", systems, CompareSettings(test=test))
    (pair,) = found.pairs
    assert found.means == {"a": 1 / queries, "b": 0.5 / queries}
    assert pair.difference == -0.5 / queries and tuple(pair.counts) == (0, queries - 1, 1)
    untested = [*pair.outcome, *pair.interval, pair.corrected, pair.effect.estimate]
    assert np.isnan(untested).all() and not pair.significant and found.better_than("a") == []
    assert said in found.untested and pair.effect.reason == found.untested
    shown = "\n\n".join(map(as_text, comparison_tables([found])))
    assert f"Not tested: {found.untested}." in shown and "nan" not in shown and "significantly" not in shown
    json.dumps(comparison_data([found]), allow_nan=False)


def test_synthesis_needs_two_collections_and_names_what_it_leaves_out():
    assert synthesise([made()]) == []
    flat = compare("flat", "nDCG@10", {"low": [values([0, 0, 0])], "high": [values([1, 0, 1])]})
    found = synthesise([made("a"), made("b", shift=0.2), flat])
    by_pair = {(s.treatment, s.control): s for s in found}
    assert len(found) == 6
    pair = by_pair["high", "low"]
    assert [c.collection for c in pair.comparisons] == ["a", "b"]
    assert list(pair.left_out) == ["flat"] and "no correlation" in pair.left_out["flat"]


def test_a_pair_without_any_effect_has_no_synthesis():
    same = {"x": [values([0.1, 0.2, 0.4])], "y": [values([0.1, 0.2, 0.4])]}
    assert synthesise([compare("a", "m", same), compare("b", "m", same)]) == []


def test_as_data_is_json_even_where_numbers_are_not():
    same = {"x": [values([0.1, 0.2, 0.4])], "y": [values([0.1, 0.2, 0.4])]}
    data = comparison_data([compare("a", "m", same)])
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again["comparisons"][0]["pairs"][0]["effect"]["estimate"] is None
    assert "not at all" in again["comparisons"][0]["pairs"][0]["effect"]["reason"]
    assert nan not in again


@pytest.fixture(scope="module")
def real(shared):
    """nDCG@10 of BM25 and TAS-B on TREC DL 2019 and 2020."""
    found = {}
    for year in ("19", "20"):
        qrels = read_qrels(shared / f"data/runs/qrels.dl{year}-passage.txt")
        found[f"dl{year}"] = {
            name: [
                evaluate(
                    Run.read(shared / f"data/runs/{name}.dl{year}.trec.gz"), qrels, ["nDCG@10"]
                ).per_query["nDCG@10"]
            ]
            for name in ("bm25", "tas-b")
        }
    return found


@pytest.mark.shared
def test_bm25_against_tas_b(real):
    for collection, systems in real.items():
        (pair,) = compare(collection, "nDCG@10", systems).pairs
        first, second = (list(systems[name][0].values()) for name in ("tas-b", "bm25"))
        expected = stats.ttest_rel(first, second)
        assert pair.outcome == pytest.approx((expected.statistic, expected.pvalue), rel=1e-12)
        assert pair.significant and pair.corrected == pair.outcome.p_value


@pytest.mark.shared
def test_meta_analysis_of_real_runs_step_by_step(real):
    """Unpaired Hedges' g of each year, then DerSimonian and Laird, each formula written out."""
    settings = CompareSettings(effect="unpaired")
    comparisons = [compare(name, "nDCG@10", systems, settings) for name, systems in real.items()]
    (synthesis,) = synthesise(comparisons)
    effects, variances = [], []
    for systems in real.values():
        t, c = (np.array(list(systems[name][0].values())) for name in ("tas-b", "bm25"))
        n = len(t)
        pooled = sqrt(((n - 1) * t.var(ddof=1) + (n - 1) * c.var(ddof=1)) / (2 * n - 2))
        d = (t.mean() - c.mean()) / pooled
        small = 1 - 3 / (4 * (n + n - 2) - 1)
        effects.append(small * d)
        variances.append(small**2 * ((n + n) / (n * n) + d**2 / (2 * (n + n))))
    w = [1 / v for v in variances]
    fixed = sum(wi * e for wi, e in zip(w, effects, strict=True)) / sum(w)
    q = sum(wi * (e - fixed) ** 2 for wi, e in zip(w, effects, strict=True))
    c = sum(w) - sum(wi**2 for wi in w) / sum(w)
    tau_squared = max(0.0, (q - 1) / c)
    w = [1 / (v + tau_squared) for v in variances]
    estimate = sum(wi * e for wi, e in zip(w, effects, strict=True)) / sum(w)
    error = sqrt(1 / sum(w))
    assert [effect.estimate for effect in synthesis.effects] == pytest.approx(effects)
    assert [effect.variance for effect in synthesis.effects] == pytest.approx(variances)
    assert synthesis.summary.q == pytest.approx(q)
    assert synthesis.summary.tau_squared == pytest.approx(tau_squared)
    assert synthesis.summary.estimate == pytest.approx(estimate)
    z = 1.959963984540054
    assert synthesis.summary.interval == pytest.approx((estimate - z * error, estimate + z * error))
    assert synthesis.summary.weights == pytest.approx([wi / sum(w) for wi in w])
