"""What every loss promises. A new one joins by its entry in `examples.py`; without one this fails."""

import inspect
from dataclasses import replace
from random import Random

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from tests.contracts.examples import EXAMPLES
from tests.contracts.test_parts import PARTS
from tests.learn.losses.steps import steps
from torch.testing import assert_close

from counterpoint.config import restore
from counterpoint.learn import Loss
from counterpoint.testing.losses import RULES, some_step

LOSSES = {cls.__name__: cls for cls in PARTS if issubclass(cls, Loss) and not inspect.isabstract(cls)}
# Softmax and margins see only differences of one query's scores (`symmetric` compares queries, too).
DIFFERENCES = {
    "CachedContrastive",
    "Contrastive",
    "KLDivergence",
    "MarginMSE",
    "MultiLabelMargin",
    "NegativeLogLikelihood",
    "Objective",
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


@pytest.mark.parametrize("name", LOSSES)
def test_has_an_example(name):
    assert EXAMPLES.get(name), f"add an example of {name} to tests/contracts/examples.py"


def test_losses_of_differences_exist():
    assert not DIFFERENCES - LOSSES.keys()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@examples
@anything
@given(seed=st.integers(0, 2**20))
def test_keeps_the_rule(declare, rule, seed):
    rule(declare().setup(), Random(seed))


def with_constant(step):
    """The step with another constant on the scores of each query."""
    constant = torch.linspace(-5, 5, len(step.scores) + 1)[1:, None]
    targets = replace(step.targets, cached=step.targets.cached + constant)
    return replace(step, scores=step.scores + constant, targets=targets)


@pytest.mark.parametrize("declare", [case for case in CASES if sees_only_differences(case)])
@anything
@given(step=steps())
def test_a_constant_on_a_querys_scores_does_not_matter(declare, step):
    loss = declare().setup()
    assert_close(loss(with_constant(step)), loss(step), **CLOSE)


@pytest.mark.parametrize("declare", [case for case in CASES if not sees_only_differences(case)])
def test_a_loss_that_sees_only_differences_is_named(declare):
    loss, moved, shifted = declare().setup(), False, False
    for step in map(some_step, map(Random, range(8))):
        noise = torch.linspace(-5, 5, step.scores.numel()).view_as(step.scores)
        moved |= not torch.allclose(loss(replace(step, scores=step.scores + noise)), loss(step), **CLOSE)
        shifted |= not torch.allclose(loss(with_constant(step)), loss(step), **CLOSE)
    assert shifted or not moved, f"add {type(loss).__name__} to DIFFERENCES of {__file__}"


@examples
def test_is_known_by_its_name(declare):
    loss = declare()
    if "name" in type(loss).parameters_of():
        named = restore({**loss.to_dict(), "name": "mine"})
        assert (loss + named).names == (loss.label, "mine")
        assert (named + named).names == ("mine_1", "mine_2")
