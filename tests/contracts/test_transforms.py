"""What every transform promises. A new one joins by its entry in `examples.py`; without one this fails."""

import inspect

import pytest
import torch
from tests.contracts.examples import EXAMPLES
from tests.contracts.test_parts import PARTS

from counterpoint.part import Part
from counterpoint.transform import Transform
from counterpoint.vectors import Vectors

DIM = 4
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


def rows(n=200):
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(DIM, DIM, generator=generator)
    return torch.randn(n, DIM, generator=generator) @ mixing + 1


def vectors(filler=0.0):
    mask = torch.tensor([[True, True, False], [False, True, False], [False, False, False]])
    values = rows(9).view(3, 3, DIM).masked_fill(~mask[:, :, None], filler)
    return Vectors(values, mask, torch.arange(9).view(3, 3))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_has_an_example(name):
    assert EXAMPLES.get(name), f"add an example of {name} to tests/contracts/examples.py"


@examples
def test_fit_returns_itself_and_is_deterministic(declare):
    transform = declare()
    assert transform.fit([rows()]) is transform
    again = declare().fit(iter(rows().split(30)))
    torch.testing.assert_close(transform(vectors()).values, again(vectors()).values)
    assert torch.equal(transform(vectors()).values, transform(vectors()).values)


@examples
@pytest.mark.parametrize("filler", [1e30, float("nan"), float("inf")])
def test_padding_never_matters_and_comes_out_as_zeros(declare, filler):
    transform = declare().fit([rows()])
    plain, filled = transform(vectors()), transform(vectors(filler))
    assert torch.equal(plain.values, filled.values)
    assert not filled.values[~filled.mask].any()


@examples
def test_rows_keep_their_places_ids_and_type(declare):
    transform = declare().fit([rows()])
    before = vectors()
    after = transform(before)
    assert torch.equal(before.mask, after.mask) and after.ids is before.ids
    for dtype in (torch.float64, torch.bfloat16):
        assert transform(before.with_values(before.values.to(dtype))).values.dtype == dtype


@examples
def test_each_row_is_mapped_alone(declare):
    transform = declare().fit([rows()])
    together = transform(vectors()).values
    for text in range(3):
        for row in range(3):
            alone = Vectors(vectors().values[[text], row : row + 1], vectors().mask[[text], row : row + 1])
            torch.testing.assert_close(transform(alone).values[0, 0], together[text, row])


@examples
def test_gradients_pass_through(declare):
    transform = declare().fit([rows()])
    values = vectors().values.requires_grad_()
    transform(vectors().with_values(values)).values.sum().backward()
    assert values.grad is not None and torch.isfinite(values.grad).all()
    assert values.grad[vectors().mask].any() and not values.grad[~vectors().mask].any()


@examples
def test_survives_saving(declare, tmp_path):
    transform = declare().fit([rows()])
    transform.save(tmp_path / "t")
    again = Part.load(tmp_path / "t")
    assert isinstance(again, Transform)
    assert torch.equal(again(vectors()).values, transform(vectors()).values)
    assert again.fingerprint() == transform.fingerprint()


@examples
def test_no_rows_and_no_texts(declare):
    transform = declare().fit([rows()])
    for shape in ((0, 3), (2, 0)):
        found = transform(Vectors(torch.zeros(*shape, DIM), torch.zeros(shape, dtype=torch.bool)))
        assert found.values.shape[:2] == shape
