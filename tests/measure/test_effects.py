"""Effects and their summary against the golden examples, a textbook's example, statsmodels and loops."""

from math import isnan, sqrt

import numpy as np
import pytest
from statsmodels.stats.meta_analysis import combine_effects, effectsize_smd

from counterpoint.errors import DataError
from counterpoint.measure import Effect, random_effects, standardised_mean_difference


def test_golden_effects(golden):
    case = golden("smd")
    treatment, control = case["inputs"]["treatment"], case["inputs"]["control"]
    for pairing in ("unpaired", "paired"):
        effect = standardised_mean_difference(treatment, control, pairing)
        assert effect.estimate == pytest.approx(case["expected"][f"{pairing}_g"], abs=1e-6)
        assert effect.variance == pytest.approx(case["expected"][f"{pairing}_var"], abs=1e-6)


def test_golden_summary(golden):
    case = golden("dersimonian_laird")
    effects = [Effect(e, v) for e, v in zip(*case["inputs"].values(), strict=True)]
    summary, expected = random_effects(effects), case["expected"]
    assert summary.q == pytest.approx(expected["Q"], abs=1e-6)
    assert summary.tau_squared == pytest.approx(expected["tau2"], abs=1e-6)
    assert summary.weights == pytest.approx(expected["weights"], abs=1e-6)
    assert (summary.estimate, summary.standard_error) == pytest.approx(
        (expected["effect"], expected["se"]), abs=1e-6
    )
    assert summary.interval == pytest.approx(expected["ci"], abs=1e-6)


def test_borensteins_example():
    """Borenstein et al. (2009), tables 14.1 and 14.3: six studies of a standardised mean difference."""
    effects = [0.095, 0.277, 0.367, 0.664, 0.462, 0.185]
    variances = [0.033, 0.031, 0.050, 0.011, 0.043, 0.023]
    summary = random_effects([Effect(e, v) for e, v in zip(effects, variances, strict=True)])
    assert summary.q == pytest.approx(12.003, rel=0.03)  # the book carries more digits of the inputs
    assert summary.tau_squared == pytest.approx(0.037, rel=0.03)
    assert summary.estimate == pytest.approx(0.358, abs=1e-3)
    assert summary.interval == pytest.approx((0.152, 0.565), abs=3e-3)
    assert summary.i_squared == pytest.approx(0.583, rel=0.03)


@pytest.mark.parametrize("spread", [0.6, 1.0])
def test_summary_is_statsmodels(spread):
    rng = np.random.default_rng(4)
    estimates, variances = rng.normal(0.3, spread, 7), rng.uniform(0.01, 0.2, 7)
    summary = random_effects([Effect(e, v) for e, v in zip(estimates, variances, strict=True)], 0.9)
    theirs = combine_effects(estimates, variances, method_re="dl", use_t=False, alpha=0.1)
    table = theirs.summary_frame(alpha=0.1)
    assert summary.tau_squared == pytest.approx(theirs.tau2) and theirs.tau2 > 0
    assert summary.q == pytest.approx(theirs.q)
    assert summary.estimate == pytest.approx(theirs.mean_effect_re)
    assert summary.standard_error == pytest.approx(theirs.sd_eff_w_re)
    assert summary.interval == pytest.approx(table.loc["random effect", ["ci_low", "ci_upp"]].tolist())
    assert summary.weights == pytest.approx(theirs.weights_rel_re)
    assert summary.i_squared == pytest.approx(theirs.i2)
    assert summary.q_p_value == pytest.approx(theirs.test_homogeneity().pvalue)


def test_variation_below_chance_is_none():
    """Unclipped, the variance between collections is negative here and the interval too narrow."""
    summary = random_effects([Effect(0.2, 0.04), Effect(0.2, 0.04), Effect(0.21, 0.04)])
    assert summary.tau_squared == summary.i_squared == 0
    assert summary.standard_error == pytest.approx(sqrt(0.04 / 3))


def test_one_collection_is_its_own_summary():
    summary = random_effects([Effect(0.2, 0.04)])
    assert (summary.estimate, summary.standard_error, summary.weights) == (0.2, pytest.approx(0.2), (1.0,))
    assert summary.interval == pytest.approx((0.2 - 1.959964 * 0.2, 0.2 + 1.959964 * 0.2))
    assert summary.tau_squared == 0 and isnan(summary.q_p_value)


def test_unpaired_is_statsmodels():
    rng = np.random.default_rng(0)
    a, b = rng.random(40), rng.random(40)
    g, variance = effectsize_smd(a.mean(), a.std(ddof=1), 40, b.mean(), b.std(ddof=1), 40)
    ours = standardised_mean_difference(a, b, "unpaired")
    assert ours.estimate == pytest.approx(g)
    assert ours.variance == pytest.approx(variance, rel=0.02)  # they take g and 2n - 3.94 in the variance


def test_the_printed_interval_of_tripclick():
    """ColBERTer section 6.3: .17 [.09, .25] over 1,175 queries, which the unpaired formula gives."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=1175), rng.normal(size=1175)
    a, b = (a - a.mean()) / a.std(ddof=1), (b - b.mean()) / b.std(ddof=1)
    low, high = standardised_mean_difference(a + 0.17, b, "unpaired").interval()
    assert (round(low, 2), round(high, 2)) == (0.09, 0.25)


def test_no_effect_is_said_to_be_none():
    for other, reason in (([0.1, 0.2, 0.4], "not at all"), ([0.2, 0.3, 0.5], "one constant")):
        effect = standardised_mean_difference([0.1, 0.2, 0.4], other)
        assert isnan(effect.estimate) and reason in effect.reason
        with pytest.raises(DataError, match="undefined"):
            random_effects([effect])
    flat = standardised_mean_difference([0.1, 0.2, 0.4], [0.0, 0.0, 0.0])
    assert isnan(flat.estimate) and "no correlation" in flat.reason
    both = standardised_mean_difference([1, 1, 1], [0, 0, 0], "unpaired")
    assert isnan(both.estimate)


def test_what_has_no_effect_is_refused():
    with pytest.raises(DataError, match="same queries on both sides, at least three; found 3 and 2"):
        standardised_mean_difference([1, 2, 3], [1, 2])
    with pytest.raises(DataError, match="no effect"):
        random_effects([])
