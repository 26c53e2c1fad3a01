"""What every transform promises. A new one joins by its entry in `examples.py`; without one this fails."""

import inspect
from random import Random

import pytest
from tests.contracts.examples import EXAMPLES
from tests.contracts.test_parts import PARTS

from counterpoint.testing.transforms import RULES
from counterpoint.transform import Transform

TRANSFORMS = {
    cls.__name__: cls for cls in PARTS if issubclass(cls, Transform) and not inspect.isabstract(cls)
}
examples = pytest.mark.parametrize(
    "declare",
    [
        pytest.param(lambda cls=cls, example=example: cls(**example(None)), id=f"{name}-{index}")
        for name, cls in TRANSFORMS.items()
        for index, example in enumerate(EXAMPLES.get(name, ()))
    ],
)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_has_an_example(name):
    assert EXAMPLES.get(name), f"add an example of {name} to tests/contracts/examples.py"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@examples
def test_keeps_the_rule(declare, rule):
    rule(declare(), Random(0))
