import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.index import best as best_module
from counterpoint.index.best import best_of


def sorted_best(scores, k, matching):
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    return sorted(at for at in order.tolist() if not matching or scores[at] > 0)


@given(
    st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.0, 0.0, 0.25, 1.0, 3.0, 7.5]), min_size=1, max_size=200),
    st.integers(1, 30),
    st.booleans(),
    st.sampled_from([1, 2, 8, 1024]),
)
def test_the_best_are_those_of_sorting(scores, k, matching, groups):
    scores = np.array(scores, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_module, "GROUPS", groups)
        assert sorted(best_of(scores, k, matching=matching).tolist()) == sorted_best(scores, k, matching)


@pytest.mark.parametrize("k", [1, 10, 1000, 40_000])
@pytest.mark.parametrize("matching", [False, True])
def test_the_best_of_many(k, matching):
    rng = np.random.default_rng(k)
    for scores in (rng.normal(size=30_000), rng.integers(-3, 3, 30_000), np.zeros(30_000)):
        scores = scores.astype(np.float32)
        assert sorted(best_of(scores, k, matching=matching).tolist()) == sorted_best(scores, k, matching)
