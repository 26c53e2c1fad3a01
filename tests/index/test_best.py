import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counterpoint.index import best as best_module
from counterpoint.index import paths
from counterpoint.index.best import Peaks, best_of


def sorted_best(scores, k, matching):
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    return sorted(at for at in order.tolist() if not matching or scores[at] > 0)


@pytest.fixture(params=[(1, 1), (1, 3), (2, 1), (2, 8), (8, 2), (1024, 64)])
def in_groups(request, monkeypatch):
    """Groups of neighbours, groups of others, and none, for few scores, too."""
    monkeypatch.setattr(best_module, "GROUPS", request.param[0])
    monkeypatch.setattr(best_module, "OF_BEST", 1)
    monkeypatch.setattr(best_module, "GROUP", request.param[1])


SCORES = st.sampled_from([-2.0, -0.5, 0.0, 0.0, 0.0, 0.25, 1.0, 3.0, 7.5])
KEPT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the same for every example


@KEPT
@given(st.lists(SCORES, min_size=1, max_size=200), st.integers(1, 30), st.booleans())
def test_the_best_are_those_of_sorting(in_groups, scores, k, matching):
    scores = np.array(scores, np.float32)
    assert sorted(best_of(scores, k, matching=matching).tolist()) == sorted_best(scores, k, matching)


@KEPT
@given(st.lists(SCORES, max_size=200), st.sampled_from([-2.0, 0.0, 0.25, 8.0]), st.integers(1, 9))
def test_the_scores_that_reach_a_bound(in_groups, scores, least, wanted):
    scores = np.array(scores, np.float32)
    peaks = Peaks(scores, wanted)
    assert peaks.reaching(least).tolist() == np.flatnonzero(scores >= least).tolist()
    assert peaks.positive().tolist() == np.flatnonzero(scores > 0).tolist()
    for k in range(1, len(scores) + 1):
        assert (scores >= peaks.bound(k)).sum() >= k


@pytest.mark.parametrize("k", [1, 10, 1000, 40_000])
@pytest.mark.parametrize("matching", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_best_of_many(k, matching, compiled):
    kernels = paths._loaded() if compiled else None
    if compiled and kernels is None:
        pytest.skip("numba is not installed")
    rng = np.random.default_rng(k)
    few = np.where(rng.random(100_003) < 0.001, rng.random(100_003), 0)
    for scores in (rng.normal(size=100_003), rng.integers(-3, 3, 30_000), np.zeros(70_000), few):
        scores = scores.astype(np.float32)
        found = best_of(scores, k, matching=matching, kernels=kernels)
        assert sorted(found.tolist()) == sorted_best(scores, k, matching)


@given(st.lists(st.one_of(SCORES, st.floats(-9, 9, width=32)), max_size=300), SCORES)
def test_compiled_selections_are_those_of_loops(scores, least):
    kernels = paths._loaded()
    if kernels is None:
        pytest.skip("numba is not installed")
    many = np.array([score for score in scores for _ in range(1 + len(scores) % 40)], np.float32)
    peaks = kernels.highest(many)
    assert peaks.tolist() == [max(many[at : at + 64]) for at in range(0, len(many), 64)]
    for above in (False, True):
        wanted = [at for at, score in enumerate(many) if score > least or (score == least and not above)]
        assert kernels.reaching(many, peaks, least, above).tolist() == wanted
