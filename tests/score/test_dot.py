import math

import pytest
import torch
from hypothesis import given, settings
from tests.score import oracle
from torch.testing import assert_close

from counterpoint.errors import ShapeError
from counterpoint.score import Dot
from counterpoint.vectors import Vectors


@settings(deadline=None)
@given(oracle.sets(max_rows=1), oracle.sets(max_rows=1))
def test_agrees_with_the_oracle(q, d):
    extra = {
        side: int(not any(texts)) for side, texts in (("q", q), ("d", d))
    }  # one row, even if all are empty
    queries, documents = oracle.vectors(q, extra=extra["q"]), oracle.vectors(d, extra=extra["d"])
    rows = [[text[0][0] if text else [0] * oracle.DIM for text in texts] for texts in (q, d)]
    plain = [[float(oracle.dot(a, b)) for b in rows[1]] for a in rows[0]]
    cosine = [[oracle.dot(oracle.unit(a), oracle.unit(b)) for b in rows[1]] for a in rows[0]]
    assert Dot("v")({"v": queries}, {"v": documents}).tolist() == plain
    assert_close(
        Dot("v", normalise=True)({"v": queries}, {"v": documents}), torch.tensor(cosine, dtype=torch.float32)
    )


def test_zero_vector_has_cosine_zero_and_a_finite_gradient():
    values = torch.zeros(1, 1, 3, requires_grad=True)
    mask = torch.ones(1, 1, dtype=torch.bool)
    found = Dot("v", normalise=True)({"v": Vectors(values, mask)}, {"v": Vectors(torch.ones(1, 1, 3), mask)})
    found.sum().backward()
    assert found.item() == 0 and values.grad is not None and torch.isfinite(values.grad).all()


def test_half_precision_is_accumulated_in_float32():
    ones = Vectors(torch.ones(1, 1, 1000, dtype=torch.bfloat16), torch.ones(1, 1, dtype=torch.bool))
    third = ones.with_values(torch.full((1, 1, 1000), 1.0078125, dtype=torch.bfloat16))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = Dot("v")({"v": ones}, {"v": third})
    assert found.dtype == torch.float32 and found.item() == 1007.8125


def test_explanation_is_one_leaf():
    one = {"v": oracle.vectors([[([1, 2, 2], 1)]])}
    other = {"v": oracle.vectors([[([2, 0, 0], 1)]])}
    found = Dot("v").explain(one, other)
    assert (found.label, found.score, found.children, found.rows) == ("Dot(v)", 2.0, (), None)
    cosine = Dot("v", normalise=True).explain(one, other)
    assert cosine.label == "Cosine(v)" and math.isclose(cosine.score, 1 / 3, rel_tol=1e-6)


def test_refuses_more_than_one_vector_per_text():
    two = {"v": oracle.vectors([[([1, 0, 0], 1), ([1, 0, 0], 1)]])}
    with pytest.raises(ShapeError, match="has 2; pool it or use MaxSim"):
        Dot("v")(two, two)
