"""A positive against its own negatives: by loops and by golden values."""

import pytest
import torch
from hypothesis import given, settings
from tests.learn.losses import loops
from tests.learn.losses.steps import steps, triple

from counterpoint.learn import Contrastive, NegativeLogLikelihood, PairwiseCrossEntropy, PairwiseSoftmax

SOME = settings(deadline=None, max_examples=40)


@pytest.mark.parametrize(
    ("loss", "by_loops"),
    [
        (NegativeLogLikelihood(), loops.negative_log_likelihood),
        (PairwiseCrossEntropy(), loops.pairwise),
        (PairwiseSoftmax(), loops.pairwise_softmax),
    ],
)
@SOME
@given(step=steps())
def test_by_loops(loss, by_loops, step):
    assert loss(step).item() == pytest.approx(by_loops(step), rel=1e-5, abs=1e-5)


def test_negative_log_likelihood_is_dprs(golden):
    case = golden("dpr_nll")
    step = triple([[case["inputs"]["pos"], *case["inputs"]["neg"]]])
    assert NegativeLogLikelihood()(step).item() == pytest.approx(case["expected"]["loss"], abs=1e-6)


def test_on_triples_the_two_are_one():
    step = triple([[3.0, 1.0], [0.5, 2.0]])
    # (ln(1 + e^-2) + ln(1 + e^1.5)) / 2
    assert PairwiseCrossEntropy()(step).item() == pytest.approx((0.1269280 + 1.7014133) / 2, abs=1e-6)
    assert NegativeLogLikelihood()(step).item() == pytest.approx((0.1269280 + 1.7014133) / 2, abs=1e-6)


def test_several_negatives_are_averaged_not_summed():
    step = triple([[0.0, 0.0, 0.0, 0.0]])
    assert PairwiseCrossEntropy()(step).item() == pytest.approx(0.6931472)  # ln 2
    assert NegativeLogLikelihood()(step).item() == pytest.approx(1.3862944)  # ln 4


def test_pairwise_softmax_by_hand():
    # Shares of the positive: e^2 / (e^2 + 1) = 0.8807971, 1/2, and 1 / (1 + e^3) = 0.0474259.
    step = triple([[2.0, 0.0], [1.0, 1.0], [-1.0, 2.0]])
    assert PairwiseSoftmax()(step).item() == pytest.approx((0.1192029 + 0.5 + 0.9525741) / 3, abs=1e-6)
    several = triple([[2.0, 0.0, 2.0]])
    assert PairwiseSoftmax()(several).item() == pytest.approx((0.1192029 + 0.5) / 2, abs=1e-6)


def test_pairwise_softmax_is_the_released_line():
    """`torch.mean(1. - scores.softmax(dim=1)[:, 0])` on (positive, negative) rows."""
    scores = torch.randn(16, 2, generator=torch.Generator().manual_seed(0)) * 3
    released = torch.mean(1.0 - scores.softmax(dim=1)[:, 0])
    assert PairwiseSoftmax()(triple(scores.tolist())).item() == pytest.approx(released.item(), abs=1e-6)


def test_the_gradient_of_pairwise_softmax_fades_on_both_sides():
    """σ(1 − σ): a pair that is hopeless teaches as little as one that is won."""
    step = triple([[0.0, -6.0], [0.0, 0.0], [0.0, 6.0]])
    step.scores.requires_grad_()
    PairwiseSoftmax()(step).backward()
    won, even, lost = (3 * step.scores.grad[:, 1]).tolist()
    assert (won, even, lost) == pytest.approx((0.0024665, 0.25, 0.0024665), abs=1e-6)


def test_an_own_document_that_is_relevant_is_no_negative():
    step = triple([[1.0, 9.0]], allowed=[[True, False]])
    assert NegativeLogLikelihood()(step).item() == PairwiseCrossEntropy()(step).item() == 0
    assert PairwiseSoftmax()(step).item() == 0


@pytest.mark.parametrize(
    "loss", [Contrastive(symmetric=True), NegativeLogLikelihood(), PairwiseCrossEntropy(), PairwiseSoftmax()]
)
@pytest.mark.parametrize("score", [-1e4, 1e4])
def test_a_query_with_nothing_but_its_positive_has_loss_0(loss, score):
    assert loss(triple([[score, 5.0]], own=[[0, -1]], allowed=[[True, False]])).item() == 0
