"""What a random projection of BM25's vectors keeps of its ranking."""

import numpy as np
import pytest
from benchmarks.papers.projection import TOP, best, deviation, kept


def test_the_share_kept_is_of_the_ten_best_in_any_order():
    scores = np.arange(20.0)[None].repeat(2, axis=0)
    top = best(scores)
    assert top.shape == (2, TOP) and set(top[0].tolist()) == set(range(10, 20))
    assert kept(top, top[:, ::-1]) == 1
    assert kept(top, np.stack([top[0], top[0] - 10])) == 0.5


def test_the_exact_deviation_is_that_of_all_signs():
    q, d = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])
    # One component is (±1 ± 2)(±3 ± 4) over the four signs of two terms: 21, −1 · −1, and the same again.
    products = np.array([3.0 * 7.0, -1.0 * -1.0])
    lengths = np.array([5.0]), np.array([25.0])
    assert deviation(q, d, lengths, dim=1) == pytest.approx(products.std())
