"""What every loss promises. A new one joins by its entry in `examples.py`; without one this fails."""

import inspect
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from tests.contracts.examples import EXAMPLES
from tests.contracts.test_parts import PARTS
from tests.learn.losses.steps import NAN, steps
from torch.nn import functional
from torch.testing import assert_close

from counterpoint.config import restore
from counterpoint.learn import Loss
from counterpoint.vectors import Vectors

LOSSES = {cls.__name__: cls for cls in PARTS if issubclass(cls, Loss) and not inspect.isabstract(cls)}
# Softmax and margins see only differences of one query's scores (`symmetric` compares queries, too).
DIFFERENCES = {
    "CachedContrastive",
    "Contrastive",
    "KLDivergence",
    "MarginMSE",
    "MultiLabelMargin",
    "NegativeLogLikelihood",
    "PairwiseCrossEntropy",
    "PairwiseSoftmax",
    "ResidualMargin",
}
CASES = [
    pytest.param(lambda cls=cls, example=example: cls(**example(None)), id=f"{name}-{index}")
    for name, cls in LOSSES.items()
    for index, example in enumerate(EXAMPLES.get(name, ()))
]
examples = pytest.mark.parametrize("declare", CASES)
anything = settings(deadline=None, max_examples=12)
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def sees_only_differences(case):
    return case.id.split("-")[0] in DIFFERENCES and not getattr(case.values[0](), "symmetric", False)


def learning(step):
    """The same step, its scores and vectors asking for gradients; and those leaves."""
    step = replace(
        step,
        scores=step.scores.clone().requires_grad_(),
        q={name: found.with_values(found.values.clone().requires_grad_()) for name, found in step.q.items()},
        d={name: found.with_values(found.values.clone().requires_grad_()) for name, found in step.d.items()},
    )
    sets = [*step.q.values(), *step.d.values()]
    return step, [step.scores, *(found.values for found in sets)]


def padded(vectors):
    """More rows, masked, that hold NaN."""
    values = functional.pad(vectors.values, (0, 0, 0, 2), value=NAN)
    ids = None if vectors.ids is None else functional.pad(vectors.ids, (0, 2), value=7)
    return Vectors(values, functional.pad(vectors.mask, (0, 2)), ids)


@pytest.mark.parametrize("name", LOSSES)
def test_has_an_example(name):
    assert EXAMPLES.get(name), f"add an example of {name} to tests/contracts/examples.py"


def test_losses_of_differences_exist():
    assert not DIFFERENCES - LOSSES.keys()


@examples
@pytest.mark.parametrize("size", [1.0, 1e4])
@anything
@given(step=steps(1.0))
def test_is_a_finite_scalar_with_a_finite_gradient(declare, size, step):
    loss = declare().setup()
    step, leaves = learning(replace(step, scores=step.scores * size))
    found = loss(step)
    assert found.shape == () and torch.isfinite(found)
    found.backward()
    reached = [leaf.grad for leaf in leaves if leaf.grad is not None]
    assert reached and all(torch.isfinite(gradient).all() for gradient in reached)


@examples
@anything
@given(step=steps())
def test_the_order_of_documents_does_not_matter(declare, step):
    loss = declare().setup()
    order = torch.arange(len(step.d["cls"])).roll(2).flip(0)
    own = step.targets.own
    moved = order.argsort()[own.clamp(min=0)].masked_fill(own < 0, -1)
    targets = replace(step.targets, own=moved, candidates=step.targets.candidates[:, order])
    d = {name: found.take(order) for name, found in step.d.items()}
    assert_close(loss(replace(step, d=d, scores=step.scores[:, order], targets=targets)), loss(step), **CLOSE)


@examples
@anything
@given(step=steps())
def test_padding_does_not_matter(declare, step):
    loss = declare().setup()
    more = {
        side: {
            **getattr(step, side),
            **{name: padded(found) for name, found in getattr(step, side).items() if name != "cls"},
        }
        for side in ("q", "d")
    }
    assert_close(loss(replace(step, **more)), loss(step))


@examples
@anything
@given(step=steps())
def test_own_documents_that_are_not_there_do_not_matter(declare, step):
    loss = declare().setup()
    own = functional.pad(step.targets.own, (0, 1), value=-1)
    targets = replace(step.targets, own=own, teacher=functional.pad(step.targets.teacher, (0, 1), value=NAN))
    assert_close(loss(replace(step, targets=targets)), loss(step))


@examples
@anything
@given(step=steps())
def test_documents_that_are_no_candidates_do_not_matter(declare, step):
    loss = declare().setup()
    d = {
        name: Vectors(
            functional.pad(found.values, (0, 0, 0, 0, 0, 1)),
            functional.pad(found.mask, (0, 0, 0, 1)),
            None if found.ids is None else functional.pad(found.ids, (0, 0, 0, 1)),
        )
        for name, found in step.d.items()
    }
    scores = functional.pad(step.scores, (0, 1), value=1e4)
    targets = replace(step.targets, candidates=functional.pad(step.targets.candidates, (0, 1)))
    assert_close(loss(replace(step, d=d, scores=scores, targets=targets)), loss(step))


@pytest.mark.parametrize("declare", [case for case in CASES if sees_only_differences(case)])
@anything
@given(step=steps())
def test_a_constant_on_a_querys_scores_does_not_matter(declare, step):
    loss = declare().setup()
    constant = torch.linspace(-5, 5, len(step.scores) + 1)[1:, None]
    targets = replace(step.targets, cached=step.targets.cached + constant)
    assert_close(loss(replace(step, scores=step.scores + constant, targets=targets)), loss(step), **CLOSE)


@examples
@anything
@given(step=steps())
def test_no_weight_no_gradient(declare, step):
    step, leaves = learning(step)
    found = (0.0 * declare().setup())(step)
    found.backward()
    assert found.item() == 0
    assert not any(leaf.grad.any() for leaf in leaves if leaf.grad is not None)


@examples
@given(step=steps())
@settings(deadline=None, max_examples=3)
def test_a_weight_multiplies(declare, step):
    loss = declare().setup()
    assert_close((3.0 * loss)(step), 3 * loss(step))


@examples
@given(step=steps())
@settings(deadline=None, max_examples=3)
def test_survives_the_trip_through_plain_data(declare, step):
    loss = declare().setup()
    again = restore(loss.to_dict()).setup()
    assert type(again) is type(loss) and again.to_dict() == loss.to_dict()
    assert torch.equal(again(step), loss(step))


@examples
def test_is_known_by_its_name(declare):
    loss = declare()
    if "name" in type(loss).parameters_of():
        named = restore({**loss.to_dict(), "name": "mine"})
        assert (loss + named).names == (loss.label, "mine")
        assert (named + named).names == ("mine_1", "mine_2")
