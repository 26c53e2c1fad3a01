"""What every scorer promises. A new one joins by its entry in `examples.py`; without one this fails."""

import inspect

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from tests.contracts.examples import EXAMPLES
from tests.contracts.test_parts import PARTS

from counterpoint.score import Scorer
from counterpoint.testing.scorers import RULES

SCORERS = {cls.__name__: cls for cls in PARTS if issubclass(cls, Scorer) and not inspect.isabstract(cls)}
examples = pytest.mark.parametrize(
    "declare",
    [
        pytest.param(lambda cls=cls, example=example: cls(**example(None)), id=f"{name}-{index}")
        for name, cls in SCORERS.items()
        for index, example in enumerate(EXAMPLES.get(name, ()))
    ],
)
anything = settings(deadline=None, max_examples=12)


def ready(declare):
    """Set up; scorers that weigh by idf are given that of the ids 1 to 3."""
    scorer = declare().setup()
    for part in scorer.modules():
        if getattr(part, "idf", 0):
            part.set_idf(torch.tensor([3, 1, 2]), torch.tensor([0.25, 2.25, 0.0]), 4.0)  # exact square roots
    return scorer


@pytest.mark.parametrize("name", SCORERS)
def test_has_an_example(name):
    assert EXAMPLES.get(name), f"add an example of {name} to tests/contracts/examples.py"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@examples
@anything
@given(st.randoms(use_true_random=False))
def test_keeps_the_rule(declare, rule, random):
    rule(ready(declare), random)
