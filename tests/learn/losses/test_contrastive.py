"""Softmax over the batch and over the cache: by loops, by golden values, by expectation."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from tests.learn.losses import loops
from tests.learn.losses.steps import INF, steps, triple

from counterpoint.errors import ConfigError
from counterpoint.learn import CachedContrastive, Contrastive

SOME = settings(deadline=None, max_examples=40)
CLOSE = {"rel": 1e-5, "abs": 1e-5}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.5, "scale": 2.0},
        {"negatives": "positives"},
        {"symmetric": True},
        {"negatives": "positives", "symmetric": True, "temperature": 3.0},
    ],
)
@SOME
@given(step=steps())
def test_contrastive_by_loops(options, step):
    assert Contrastive(**options)(step).item() == pytest.approx(loops.contrastive(step, **options), **CLOSE)


def test_contrastive_is_daft_equation_5(golden):
    for case in (golden("contrastive"), golden("contrastive_collapsed")):
        given = case["inputs"]
        cosines = (
            [given["cos_pos"], *given["cos_neg"]] if "cos_pos" in given else [0.3] * (given["n_neg"] + 1)
        )
        loss = Contrastive(scale=given.get("factor", 20), temperature=given.get("tau", 1))
        assert loss(triple([cosines])).item() == pytest.approx(case["expected"]["loss"], abs=1e-5)


def test_two_queries_with_one_positive_are_no_negatives_of_each_other():
    step = triple([[1.0, 5.0], [2.0, 7.0]], own=[[0], [0]], allowed=[[True, False], [True, False]])
    assert Contrastive(symmetric=True)(step).item() == 0


def test_a_hard_negative_counts_only_against_its_own_query():
    step = triple([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]], own=[[0, 2], [1, -1]])
    # ln(1 + e^-1 + e^1) and, without the other query's negative, ln(1 + e^-1).
    found = Contrastive(negatives="positives")(step).item()
    assert found == pytest.approx((1.4076060 + 0.3132617) / 2, abs=1e-6)


@SOME
@given(step=steps())
def test_cached_contrastive_by_loops(step):
    step = replace(step, scores=step.scores.clone().requires_grad_())
    loss = CachedContrastive(scale=2.0)(step)
    loss.backward()
    value, gradient = loops.cached_contrastive(step, scale=2.0)
    assert loss.item() == pytest.approx(value, **CLOSE)
    torch.testing.assert_close(step.scores.grad, torch.tensor(gradient), rtol=1e-4, atol=1e-5)


def test_the_cache_gives_the_whole_softmax_gradient_in_expectation():
    scores = torch.tensor([[0.4, 1.0, -0.3, 0.7]], dtype=torch.float64)
    whole = scores.clone().requires_grad_()
    (-whole.log_softmax(1)[0, 0]).backward()
    expected = torch.zeros_like(scores)
    for drawn, chance in enumerate(scores[0, 1:].softmax(0), start=1):
        leaf = scores.clone().requires_grad_()
        step = triple([[0.0] * 4], own=[[0, drawn]])
        step = replace(step, scores=leaf, targets=replace(step.targets, cached=scores[:, 1:]))
        loss = CachedContrastive()(step)
        loss.backward()
        assert loss.item() == pytest.approx(-scores.log_softmax(1)[0, 0].item())
        expected += chance * leaf.grad
    torch.testing.assert_close(expected, whole.grad)


def test_the_cache_reproduces_daft_equation_5(golden):
    case = golden("contrastive")
    given = case["inputs"]
    step = triple([[given["cos_pos"], given["cos_neg"][0]]], cached=[given["cos_neg"]])
    assert CachedContrastive(scale=20.0)(step).item() == pytest.approx(case["expected"]["loss"], abs=1e-5)


def test_a_cache_with_nothing_that_counts_gives_0():
    step = triple([[3.0, 2.0]], cached=[[-INF, -INF]])
    assert CachedContrastive()(step).item() == 0


def test_what_is_wrong_is_said():
    with pytest.raises(ConfigError, match="temperature must be above 0, found 0"):
        Contrastive(temperature=0)
    with pytest.raises(ConfigError, match="'batch' or 'positives', found 'all'"):
        Contrastive(negatives="all")
    with pytest.raises(ConfigError, match="hard: this step has no cached documents"):
        CachedContrastive("hard")(triple([[1.0, 2.0]]))
    with pytest.raises(ConfigError, match="drawn negative"):
        CachedContrastive()(triple([[1.0]], cached=[[1.0]]))
