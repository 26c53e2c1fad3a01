import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import ShapeError
from counterpoint.index import kernels
from counterpoint.index.kernels import best_rows, dot_scores, maxsim_scores
from counterpoint.types import Ragged


def maxsim_by_loops(query, document):
    total = 0.0
    for q in query:
        if len(document):
            total += max(float(sum(a * b for a, b in zip(q, d, strict=True))) for d in document)
    return total


@given(
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=6), m=st.integers(0, 3), seed=st.integers(0, 99)
)
def test_packed_maxsim_is_the_loop(lengths, m, seed):
    rng = np.random.default_rng(seed)
    sets = [rng.normal(size=(n, 3)).astype(np.float32) for n in lengths]
    query = rng.normal(size=(m, 3)).astype(np.float32)
    scores = maxsim_scores(query, Ragged.from_list(sets, dim=3))
    np.testing.assert_allclose(scores, [maxsim_by_loops(query, s) for s in sets], atol=1e-5)


sizes = st.lists(st.integers(0, 4), min_size=1, max_size=6)


@settings(deadline=None)
@given(sizes, sizes, st.booleans(), st.booleans(), st.integers(1, 9), st.integers(0, 99))
def test_many_queries_score_as_loops_say_however_they_are_cut(asked, lengths, exact, floor, most, seed):
    rng = np.random.default_rng(seed)

    def packed(counts):
        rows = [rng.normal(size=(n, 3)).astype(np.float32) for n in counts]
        return Ragged.from_list(rows, [rng.integers(0, 3, n) for n in counts], dim=3)

    queries, documents = packed(asked), packed(lengths)
    expected = np.zeros((len(asked), len(lengths)))
    for i, j in np.ndindex(*expected.shape):
        for q, own in zip(queries[i], queries.ids_of(i), strict=True):
            pairs = zip(documents[j], documents.ids_of(j), strict=True)
            found = [0.0 if exact and own != other else float(q @ d) for d, other in pairs]
            expected[i, j] += max(found, default=0.0) if not floor else max([0.0, *found])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "ROWS", most)
        patch.setattr(kernels, "PRODUCTS", 2 * most)
        scores = kernels.maxsim_table(queries, documents, exact=exact, floor=floor)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_best_rows_are_those_that_maxsim_takes():
    rng = np.random.default_rng(0)
    query, document = rng.normal(size=(4, 8)), rng.normal(size=(5, 8))
    rows, values = best_rows(query, Ragged.from_list([document], dim=8))
    assert values.sum() == pytest.approx(maxsim_by_loops(query, document))
    np.testing.assert_allclose(values, (query * document[rows]).sum(1))


def test_dot_scores_are_inner_products():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 8)), rng.normal(size=(5, 8))
    np.testing.assert_allclose(dot_scores(a, b), (torch.tensor(a) @ torch.tensor(b).T).numpy())


def test_another_models_vectors_are_refused():
    with pytest.raises(ShapeError, match="another model"):
        dot_scores(np.zeros((1, 3)), np.zeros((1, 4)))
    with pytest.raises(ShapeError, match="another model"):
        maxsim_scores(np.zeros((1, 3)), Ragged.from_list([np.zeros((1, 4))], dim=4))


def test_rows_without_ids_cannot_match_exactly():
    query, documents = np.ones((1, 3)), Ragged.from_list([np.ones((1, 3))], dim=3)
    with pytest.raises(ShapeError, match="exact matching needs vectors with ids"):
        maxsim_scores(query, documents, np.array([1]))
