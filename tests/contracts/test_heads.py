"""What every head promises. A new one joins by its entry in `examples.py`; without one `test_parts` fails."""

import inspect
from random import Random

import pytest
from tests.contracts.examples import EXAMPLES
from tests.contracts.test_parts import PARTS

from counterpoint.encode import Head
from counterpoint.encode.keyed import Keyed
from counterpoint.testing.heads import RULES

# `Keyed` heads choose their rows by hidden states: they have no `choice`, and suites of their own.
HEADS = {
    cls.__name__: cls
    for cls in PARTS
    if issubclass(cls, Head) and not issubclass(cls, Keyed) and not inspect.isabstract(cls)
}
examples = pytest.mark.parametrize(
    "declare",
    [
        pytest.param(lambda cls=cls, example=example: cls(**example(None)), id=f"{name}-{index}")
        for name, cls in HEADS.items()
        for index, example in enumerate(EXAMPLES[name])
        if not example(None).get("tokenwise")  # these must be fitted first
    ],
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@examples
def test_keeps_the_rule(declare, rule):
    rule(declare(), Random(0))
