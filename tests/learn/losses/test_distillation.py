"""Losses of a teacher's scores: by loops, by golden values, by scipy."""

import pytest
from hypothesis import given, settings
from scipy.special import softmax
from scipy.stats import entropy
from tests.learn.losses import loops
from tests.learn.losses.steps import NAN, steps, triple

from counterpoint.errors import ConfigError
from counterpoint.learn import KLDivergence, MarginMSE

SOME = settings(deadline=None, max_examples=40)


@SOME
@given(step=steps())
def test_margin_mse_by_loops(step):
    assert MarginMSE()(step).item() == pytest.approx(loops.margin_mse(step), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
@SOME
@given(step=steps())
def test_kl_divergence_by_loops(temperature, step):
    found = KLDivergence(temperature=temperature)(step).item()
    assert found == pytest.approx(loops.kl_divergence(step, temperature=temperature), rel=1e-4, abs=1e-5)


def test_margin_mse_is_colberters_equation_16(golden):
    case = golden("margin_mse")
    given = case["inputs"]
    step = triple(
        list(map(list, zip(given["s_pos"], given["s_neg"], strict=True))),
        teacher=list(map(list, zip(given["t_pos"], given["t_neg"], strict=True))),
    )
    assert MarginMSE()(step).item() == pytest.approx(case["expected"]["loss"], abs=1e-5)


def test_kl_divergence_is_scipys():
    student, teacher = [1.0, -2.0, 0.5], [3.0, 0.0, 2.5]
    step = triple([student, student], teacher=[teacher, [1.0, NAN, NAN]])
    assert KLDivergence()(step).item() == pytest.approx(entropy(softmax(teacher), softmax(student)), abs=1e-6)
    assert KLDivergence()(triple([student], teacher=[student])).item() == pytest.approx(0, abs=1e-7)


def test_documents_without_a_teachers_score_are_left_out():
    step = triple(
        [[5.0, 3.0, 1e4], [2.0, 4.0, -1e4]], teacher=[[10.0, 4.0, NAN], [8.0, 7.5, NAN]]
    )  # the golden example with a third document
    assert MarginMSE()(step).item() == pytest.approx(11.125)
    unknown = triple([[5.0, 3.0], [9.0, 9.0]], teacher=[[10.0, 4.0], [NAN, 1.0]])
    assert MarginMSE()(unknown).item() == 16  # (2 − 6)²; without its positive's score a query has no margin


@pytest.mark.parametrize("loss", [MarginMSE(name="distil"), KLDivergence(name="distil")])
@pytest.mark.parametrize("teacher", [None, [[NAN, NAN]], [[1.0, NAN]]])
def test_a_step_without_teacher_is_an_error_and_not_0(loss, teacher):
    step = triple([[1.0, 2.0]], **({} if teacher is None else {"teacher": teacher}))
    with pytest.raises(ConfigError, match="distil: .*give the stage a teacher"):
        loss(step)


def test_temperature_must_be_positive():
    with pytest.raises(ConfigError, match="temperature must be above 0"):
        KLDivergence(temperature=-1)
