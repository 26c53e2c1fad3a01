"""Tests, intervals and corrections against scipy, statsmodels, loops and Fisher's own worked example."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.stats.multitest import multipletests

from counterpoint.errors import ConfigError, DataError
from counterpoint.measure import (
    bonferroni,
    bootstrap_interval,
    holm,
    paired_t_test,
    randomisation_test,
    two_sample_t_test,
    win_tie_loss,
)

# Darwin's maize, crossed minus self-fertilised: Fisher, The Design of Experiments (1935).
DARWIN = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48.0])
ALTERNATIVES = ["two-sided", "greater", "less"]


def test_fishers_example():
    assert paired_t_test(DARWIN).statistic == pytest.approx(2.148, abs=5e-4)
    assert paired_t_test(DARWIN).p_value == pytest.approx(0.0497, abs=5e-5)
    assert randomisation_test(DARWIN).p_value == 1726 / 2**15  # section 21: 863 of each sign
    assert randomisation_test(DARWIN, "greater").p_value == 863 / 2**15


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_t_tests_are_scipys(alternative):
    rng = np.random.default_rng(3)
    a, b = rng.random(50), rng.random(50)
    assert paired_t_test(a - b, alternative) == pytest.approx(stats.ttest_rel(a, b, alternative=alternative))
    expected = stats.ttest_ind(a[:3], b[:4], equal_var=True, alternative=alternative)
    assert two_sample_t_test(a[:3], b[:4], alternative) == pytest.approx(expected)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_randomisation_is_scipys(alternative):
    few = np.random.default_rng(1).normal(0.3, 1, 11)
    expected = stats.permutation_test(
        (few,), np.mean, permutation_type="samples", alternative=alternative, n_resamples=np.inf
    )
    assert randomisation_test(few, alternative) == pytest.approx((expected.statistic, expected.pvalue))
    many = np.random.default_rng(2).normal(0.2, 1, 60)
    expected = stats.permutation_test(
        (many,),
        lambda x, axis: x.mean(axis),
        permutation_type="samples",
        alternative=alternative,
        n_resamples=20_000,
        rng=np.random.default_rng(5),
    )
    found = randomisation_test(many, alternative, resamples=20_000)
    assert found.p_value == pytest.approx(expected.pvalue, abs=0.015)  # four standard errors of the two


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, st.integers(2, 7), elements=st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.2, 0.3])))
def test_exact_randomisation_by_loops(differences):
    """With many ties, and with sums that differ in their last digits only."""
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in product([1, -1], repeat=len(differences))
    ]
    extreme = sum(abs(s) >= abs(differences.sum()) - 1e-9 for s in sums)
    assert randomisation_test(differences).p_value == extreme / len(sums)


def test_drawn_signs_are_those_of_the_seed():
    many = np.random.default_rng(2).normal(0.2, 1, 60)
    assert randomisation_test(many, seed=1, resamples=999) == randomisation_test(many, seed=1, resamples=999)
    assert randomisation_test(many, seed=1, resamples=999) != randomisation_test(many, seed=2, resamples=999)
    assert randomisation_test(many + 10, resamples=999).p_value == 1 / 1000


def test_no_difference_is_no_evidence():
    nothing, constant = np.zeros(5), np.full(5, 0.25)
    for test in (paired_t_test, randomisation_test):
        assert test(nothing) == (0.0, 1.0)
    assert paired_t_test(constant) == (np.inf, 0.0)
    assert paired_t_test(constant, "less") == (np.inf, 1.0)
    assert paired_t_test(-constant, "less") == (-np.inf, 0.0)
    assert paired_t_test(np.array([0.1 + 0.2, 0.3, 0.3])) == (np.inf, 0.0), "the same number but for rounding"
    assert two_sample_t_test([0.5, 0.5], [0.5, 0.5]) == (0.0, 1.0)
    assert two_sample_t_test([0.5, 0.5], [0.25, 0.25]) == (np.inf, 0.0)
    assert bootstrap_interval(constant) == (0.25, 0.25)


def test_bootstrap_is_bca_by_loops():
    """Efron and Tibshirani (1993), equations 14.10 to 14.15, over the resamples that the seed gives."""
    x, resamples = DARWIN, 2000
    rng = np.random.default_rng(0)
    means = np.array([x[row].mean() for row in rng.integers(0, len(x), size=(resamples, len(x)))])
    below = (np.sum(means < x.mean()) + np.sum(means <= x.mean())) / (2 * resamples)
    bias = stats.norm.ppf(below)
    left_out = np.array([np.delete(x, i).mean() for i in range(len(x))])
    u = left_out.mean() - left_out
    acceleration = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    ends = []
    for z in (stats.norm.ppf(0.025), stats.norm.ppf(0.975)):
        level = stats.norm.cdf(bias + (bias + z) / (1 - acceleration * (bias + z)))
        ends.append(np.percentile(means, 100 * level))
    assert bootstrap_interval(x, resamples=resamples, seed=0) == pytest.approx(ends)


@settings(max_examples=20, deadline=None)  # statsmodels takes a twentieth of a second
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_are_statsmodels(p_values):
    for ours, theirs in ((bonferroni, "bonferroni"), (holm, "holm")):
        assert ours(p_values) == pytest.approx(multipletests(p_values, method=theirs)[1])


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert bonferroni([0.01, 0.4]) == pytest.approx([0.02, 0.8])
    assert holm([]) == bonferroni([]) == []


def test_win_tie_loss():
    assert win_tie_loss(np.array([0.1, 1e-12, -0.2, 0.0, 0.3])) == (2, 2, 1)


def test_what_cannot_be_tested_is_refused():
    for test in (paired_t_test, randomisation_test, bootstrap_interval):
        with pytest.raises(DataError, match="at least two values, found 1"):
            test(np.array([0.5]))
    with pytest.raises(DataError, match="at least two"):
        two_sample_t_test([0.5], [0.4, 0.3])
    with pytest.raises(ConfigError, match="between 0 and 1, found 95"):
        bootstrap_interval(DARWIN, 95)
    with pytest.raises(ConfigError, match="resamples must be positive, found 0"):
        randomisation_test(DARWIN, resamples=0)
