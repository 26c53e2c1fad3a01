"""The contract of transforms: every row is mapped alone, and keeps its place, ids and type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import torch
from jaxtyping import Float
from torch import Tensor
from torch.testing import assert_close

from counterpoint.errors import NotFittedError
from counterpoint.part import Part
from counterpoint.testing.rules import making, try_rules
from counterpoint.transform import FittedTransform, Transform
from counterpoint.vectors import Vectors

__all__ = ["DIM", "RULES", "check_transform"]

DIM = 4


def check_transform(declare: Callable[[], Transform]) -> None:
    """Check a transform of vectors with 4 components.

    Args:
        declare: makes a transform that is not fitted yet.

    Raises:
        AssertionError: naming the broken rule.

    Example:
        >>> from counterpoint.transform import Whitening
        >>> check_transform(lambda: Whitening(4))
    """
    making(declare, "lambda: Whitening(4)")
    try_rules(RULES, declare, draws=1)


def fits_in_one_way(transform: Transform, _: Random) -> None:
    """`fit` returns the transform, and depends on the rows alone, not on how they are cut into batches."""
    rows, again = some_rows(), Part.from_dict(transform.to_dict())
    assert isinstance(again, Transform)
    assert transform.fit([rows]) is transform, "`fit` does not return self"
    assert again.fit(iter(rows.split(30))) is again, "`fit` does not return self"
    found = mapped(transform, texts())
    same = "vectors depend on the batches; rows can be read only once"
    assert_close(found.values, mapped(again, texts()).values, msg=lambda said: f"{same}: {said}")
    assert torch.equal(found.values, mapped(transform, texts()).values)


def refuses_vectors_before_fit(transform: Transform, _: Random) -> None:
    """A transform that learns maps nothing before `fit`; `check_fitted` refuses it."""
    if not isinstance(transform, FittedTransform):
        return
    for made in (transform, transform.setup()):
        try:
            made(texts())
        except NotFittedError:
            continue
        raise AssertionError("`forward` mapped vectors before `fit`; call `self.check_fitted(…)` in it")


def forgets_an_earlier_fit(transform: Transform, _: Random) -> None:
    """A second `fit` starts anew."""
    again = Part.from_dict(transform.to_dict())
    assert isinstance(again, Transform)
    transform.fit([3 * some_rows() + 7])
    found, wanted = (mapped(each.fit([some_rows()]), texts()).values for each in (transform, again))
    assert torch.equal(found, wanted), "vectors differ from those of a transform that was fitted once"


def ignores_padding(transform: Transform, _: Random) -> None:
    """Padding never matters, and comes out as zeros."""
    transform.fit([some_rows()])
    plain = mapped(transform, texts())
    for filler in (1e30, float("nan"), float("inf")):
        filled = mapped(transform, texts(filler))
        assert torch.equal(plain.values, filled.values), f"padding of {filler} changes the vectors"
        assert not filled.values[~filled.mask].any(), "padding comes out as other than zeros"


def keeps_zeros(transform: Transform, _: Random) -> None:
    """A row that is exactly zero stays zero."""
    transform.fit([some_rows()])
    given = texts()
    given.values[0, 0] = 0
    found = mapped(transform, given).values[0, 0].tolist()
    remedy = "write `.masked_fill(~vectors.values.any(-1, keepdim=True), 0)`"
    assert not any(found), f"a zero row becomes {found}; {remedy}"


def keeps_places_ids_and_type(transform: Transform, _: Random) -> None:
    """Rows keep their places, their ids and their floating-point type."""
    transform.fit([some_rows()])
    before = texts()
    after = mapped(transform, before)
    assert torch.equal(before.mask, after.mask), "the mask changed"
    assert after.ids is before.ids, "the ids changed"
    for dtype in (torch.float64, torch.bfloat16):
        found = mapped(transform, before.with_values(before.values.to(dtype))).values.dtype
        assert found == dtype, f"vectors of {dtype} become {found}"


def maps_each_row_alone(transform: Transform, _: Random) -> None:
    """A row's vector does not depend on other rows."""
    transform.fit([some_rows()])
    given = texts()
    together = mapped(transform, given).values
    for text in range(3):
        for row in range(3):
            alone = Vectors(given.values[[text], row : row + 1], given.mask[[text], row : row + 1])
            assert_close(mapped(transform, alone).values[0, 0], together[text, row])


def passes_gradients(transform: Transform, _: Random) -> None:
    """Gradients reach every row, and no padding."""
    transform.fit([some_rows()])
    given = texts()
    values = given.values.requires_grad_()
    mapped(transform, given.with_values(values)).values.sum().backward()
    assert values.grad is not None and values.grad[given.mask].any(), "no gradient reaches the rows"
    assert torch.isfinite(values.grad).all(), "a gradient is not finite"
    assert not values.grad[~given.mask].any(), "a gradient reaches padding"


def survives_saving(transform: Transform, _: Random) -> None:
    """A fitted transform that is loaded again maps as before."""
    transform.fit([some_rows()])
    with TemporaryDirectory() as folder:
        transform.save(Path(folder) / "transform")
        again = Part.load(Path(folder) / "transform")
    assert isinstance(again, Transform) and again.fingerprint() == transform.fingerprint()
    same = torch.equal(mapped(again, texts()).values, mapped(transform, texts()).values)
    assert same, "it maps in another way after loading"


def takes_no_rows(transform: Transform, _: Random) -> None:
    """There may be no texts, and texts without rows."""
    transform.fit([some_rows()])
    for shape in ((0, 3), (2, 0)):
        found = mapped(transform, Vectors(torch.zeros(*shape, DIM), torch.zeros(shape, dtype=torch.bool)))
        assert found.values.shape[:2] == shape


RULES = (
    fits_in_one_way,
    refuses_vectors_before_fit,
    forgets_an_earlier_fit,
    ignores_padding,
    keeps_zeros,
    keeps_places_ids_and_type,
    maps_each_row_alone,
    passes_gradients,
    survives_saving,
    takes_no_rows,
)


def mapped(transform: Transform, given: Vectors) -> Vectors:
    """What `forward` returns."""
    found = transform(given)
    assert isinstance(found, Vectors), f"`forward` returns a {type(found).__name__}; return Vectors"
    return found


def some_rows(count: int = 200) -> Float[Tensor, "n d"]:
    """Rows with correlated components and a mean that is not zero."""
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(DIM, DIM, generator=generator)
    return torch.randn(count, DIM, generator=generator) @ mixing + 1


def texts(filler: float = 0.0) -> Vectors:
    """Three texts, of which one has no rows."""
    mask = torch.tensor([[True, True, False], [False, True, False], [False, False, False]])
    values = some_rows(9).view(3, 3, DIM).masked_fill(~mask[:, :, None], filler)
    return Vectors(values, mask, torch.arange(9).view(3, 3))
