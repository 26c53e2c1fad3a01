import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.index import best as best_module
from counterpoint.index.best import Peaks, best_of


def sorted_best(scores, k, matching):
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    return sorted(at for at in order.tolist() if not matching or scores[at] > 0)


@given(
    st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.0, 0.0, 0.25, 1.0, 3.0, 7.5]), min_size=1, max_size=200),
    st.integers(1, 30),
    st.booleans(),
    st.sampled_from([1, 2, 8, 1024]),
)
def test_the_best_are_those_of_sorting(scores, k, matching, group):
    scores = np.array(scores, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_module, "GROUP", group)
        assert sorted(best_of(scores, k, matching=matching).tolist()) == sorted_best(scores, k, matching)


@pytest.mark.parametrize("k", [1, 10, 1000, 40_000])
@pytest.mark.parametrize("matching", [False, True])
def test_the_best_of_many(k, matching):
    rng = np.random.default_rng(k)
    for scores in (rng.normal(size=30_000), rng.integers(-3, 3, 30_000), np.zeros(30_000)):
        scores = scores.astype(np.float32)
        assert sorted(best_of(scores, k, matching=matching).tolist()) == sorted_best(scores, k, matching)


@given(
    st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0]), max_size=200),
    st.sampled_from([-2.0, 0.0, 0.25, 2.0]),
    st.sampled_from([1, 2, 8, 1024]),
)
def test_the_scores_that_reach_a_bound(scores, least, group):
    scores = np.array(scores, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_module, "GROUP", group)
        peaks = Peaks(scores, 3)
        assert peaks.reaching(least).tolist() == np.flatnonzero(scores >= least).tolist()
        assert peaks.positive().tolist() == np.flatnonzero(scores > 0).tolist()
        for k in range(1, len(scores) + 1):
            assert (scores >= peaks.bound(k)).sum() >= k
