import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.score import oracle
from torch.testing import assert_close

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.score import MaxSim
from counterpoint.vectors import Vectors

OPTIONS = st.fixed_dictionaries({}, optional={name: st.booleans() for name in ("exact", "floor0")})


def score(scorer, q, d, **padding):
    return scorer({"w": oracle.vectors(q, **padding)}, {"w": oracle.vectors(d, **padding)})


@settings(deadline=None)
@given(oracle.sets(), oracle.sets(), OPTIONS)
def test_agrees_with_the_oracle(q, d, options):
    expected = [[oracle.maxsim(one, other, **options) for other in d] for one in q]
    assert score(MaxSim("w", **options), q, d).tolist() == expected


@settings(deadline=None)
@given(oracle.sets(), oracle.sets(), st.booleans())
def test_cosines_agree_with_the_oracle(q, d, exact):
    expected = [[oracle.maxsim(one, other, exact=exact, normalise=True) for other in d] for one in q]
    found = score(MaxSim("w", exact=exact, normalise=True), q, d)
    assert_close(found, torch.tensor(expected), atol=1e-5, rtol=1e-5)


@settings(deadline=None)
@given(oracle.sets(), oracle.sets(), OPTIONS, st.integers(0, 3), st.booleans())
def test_padding_changes_nothing(q, d, options, extra, holes):
    scorer = MaxSim("w", **options)
    plain = score(scorer, q, d, filler=0.0)
    assert torch.equal(plain, score(scorer, q, d, extra=extra, holes=holes))
    assert torch.equal(plain, score(scorer, q, d, extra=extra, filler=1e30))


@settings(deadline=None)
@given(oracle.sets(), oracle.sets(max_texts=5), OPTIONS, st.integers(1, 60))
def test_blocks_change_nothing(q, d, options, block):
    scorer = MaxSim("w", **options)
    queries, documents = oracle.vectors(q), oracle.vectors(d)
    assert torch.equal(
        scorer._in_blocks(queries, documents, block), scorer._in_blocks(queries, documents, 2**20)
    )


def test_padding_is_not_a_floor_under_negative_matches():
    q, d = [[([1, 0, 0], 1)]], [[([-2, 0, 0], 1)], [([1, 0, 0], 1), ([0, 1, 0], 1)]]
    assert score(MaxSim("w"), q, d).tolist() == [[-2.0, 1.0]]


def test_blocks_bound_the_memory_held(monkeypatch):
    held = []
    original = MaxSim._best

    def measured(self, q, d):
        held.append(len(q) * len(d) * q.mask.shape[1] * d.mask.shape[1])
        return original(self, q, d)

    monkeypatch.setattr(MaxSim, "_best", measured)
    q = Vectors(torch.randn(6, 5, 4), torch.ones(6, 5, dtype=torch.bool))
    d = Vectors(torch.randn(50, 7, 4), torch.ones(50, 7, dtype=torch.bool))
    for block in (1, 36, 500, 10_000):
        held.clear()
        assert MaxSim("w")._in_blocks(q, d, block).shape == (6, 50)
        assert max(held) <= max(block, 5 * 7)


def test_gradients_do_not_depend_on_blocks():
    q = torch.randn(3, 4, 8, dtype=torch.float64, requires_grad=True)
    d = torch.randn(5, 6, 8, dtype=torch.float64, requires_grad=True)
    mask_q, mask_d = torch.rand(3, 4) > 0.3, torch.rand(5, 6) > 0.3
    ids_q, ids_d = torch.randint(1, 4, (3, 4)), torch.randint(1, 4, (5, 6))
    for exact in (False, True):
        scorer, found = MaxSim("w", exact=exact), []
        for block in (2**20, 30):
            scores = scorer._in_blocks(Vectors(q, mask_q, ids_q), Vectors(d, mask_d, ids_d), block)
            found.append(torch.autograd.grad(scores.square().sum(), (q, d)))
        assert_close(found[0], found[1])


@pytest.mark.parametrize("options", [{}, {"exact": True}, {"normalise": True}, {"floor0": True}])
def test_gradients_agree_with_finite_differences(options):
    torch.manual_seed(0)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    ids = torch.tensor([[1, 2, 0], [0, 0, 0]])

    def score(q, d):
        return MaxSim("w", **options)({"w": Vectors(q, mask, ids)}, {"w": Vectors(d, mask, ids)})

    q, d = (torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(score, (q, d))


@pytest.mark.parametrize("options", [{}, {"exact": True}, {"normalise": True}, {"floor0": True}])
@pytest.mark.parametrize("rows", [0, 2])
def test_empty_texts_score_zero_and_have_no_nan_gradient(options, rows):
    values = torch.full((2, rows, 4), float("nan"), requires_grad=True)
    empty = Vectors(values, torch.zeros(2, rows, dtype=torch.bool), torch.zeros(2, rows, dtype=torch.int64))
    full_values = torch.randn(3, 5, 4, requires_grad=True)
    full = Vectors(full_values, torch.ones(3, 5, dtype=torch.bool), torch.ones(3, 5, dtype=torch.int64))
    scorer = MaxSim("w", **options)
    for q, d in ((empty, full), (full, empty), (empty, empty)):
        scores = scorer({"w": q}, {"w": d})
        assert torch.equal(scores, torch.zeros(len(q), len(d)))
        scores.sum().backward()
    for leaf in (values, full_values):
        assert leaf.grad is not None and torch.equal(leaf.grad, torch.zeros_like(leaf))


def test_no_queries_or_no_documents():
    some = oracle.vectors([[([1, 0, 0], 1)]])
    none = Vectors(
        torch.zeros(0, 2, 3), torch.zeros(0, 2, dtype=torch.bool), torch.zeros(0, 2, dtype=torch.int64)
    )
    scorer = MaxSim("w", exact=True)
    assert scorer({"w": some}, {"w": none}).shape == (1, 0)
    assert scorer({"w": none}, {"w": some}).shape == (0, 1)


def test_half_precision_vectors_are_accumulated_in_float32():
    q = torch.ones(1, 1, 1024, dtype=torch.bfloat16)
    d = torch.full((1, 1, 1024), 1.0078125, dtype=torch.bfloat16)  # 1 + 2^-7, exact in bfloat16
    mask = torch.ones(1, 1, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = MaxSim("w")({"w": Vectors(q, mask)}, {"w": Vectors(d, mask)})
    assert found.dtype == torch.float32 and found.item() == 1032.0


def test_ties_go_to_the_first_row():
    q, d = [[([1, 0, 0], 1)]], [[([0, 1, 0], 1), ([2, 0, 0], 1), ([2, 1, 0], 1)]]
    leaf = MaxSim("w").explain({"w": oracle.vectors(q)}, {"w": oracle.vectors(d)}).children[0]
    assert leaf.rows == (0, 1)


def test_explanation_counts_real_rows_only():
    q, d = [[([1, 0, 0], 1), ([0, 1, 0], 2)]], [[([0, 3, 0], 1), ([2, 0, 0], 1)]]
    found = MaxSim("w").explain({"w": oracle.vectors(q, holes=True)}, {"w": oracle.vectors(d, holes=True)})
    assert [(leaf.rows, leaf.score) for leaf in found.leaves()] == [((0, 1), 2.0), ((1, 0), 3.0)]


def test_explanation_names_no_row_where_none_matched():
    q = {"w": oracle.vectors([[([1, 0, 0], 1), ([1, 0, 0], 2)]])}
    d = {"w": oracle.vectors([[([-5, 0, 0], 2), ([-4, 0, 0], 2)]])}
    empty = {"w": oracle.vectors([[]])}
    assert [leaf.rows for leaf in MaxSim("w", exact=True).explain(q, d).leaves()] == [(0, None), (1, 1)]
    assert [leaf.rows for leaf in MaxSim("w", floor0=True).explain(q, d).leaves()] == [(0, None), (1, None)]
    assert [leaf.rows for leaf in MaxSim("w").explain(q, empty).leaves()] == [(0, None), (1, None)]


def test_what_is_wrong_is_named():
    words = oracle.vectors([[([1, 0, 0], 1)]])
    without_ids = Vectors(words.values, words.mask)
    wide = Vectors(torch.zeros(1, 1, 4), torch.ones(1, 1, dtype=torch.bool))
    with pytest.raises(ConfigError, match="no vector set 'w' on the document side; it has tokens, cls"):
        MaxSim("w")({"w": words}, {"tokens": words, "cls": words})
    with pytest.raises(ShapeError, match="has none"):
        MaxSim("w", exact=True)({"w": words}, {"w": without_ids})
    with pytest.raises(ShapeError, match="3 components, document vectors 4"):
        MaxSim("w")({"w": words}, {"w": wide})
    with pytest.raises(ShapeError, match="found 1 and 2"):
        MaxSim("w").explain({"w": words}, {"w": oracle.vectors([[], []])})
