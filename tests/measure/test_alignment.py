"""The divergence estimate against theory, worked examples and loops; the spread of vectors by definition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from scipy.stats import ncx2

from counterpoint.errors import ConfigError, DataError, ShapeError
from counterpoint.measure.alignment import (
    Divergence,
    _all_distances,
    cross_cosine,
    distinct_texts,
    divergence,
    entropy_rank,
    first_share,
    kl_divergence,
    mean_cosine,
    participation_ratio,
    profile,
    spectrum,
    spread,
)


def by_hand(x, y, k=1):
    """Equation 9 of DAFT, distance by distance."""
    n, dim = x.shape
    r = [sorted(math.dist(x[i], x[j]) for j in range(n) if j != i)[k - 1] for i in range(n)]
    s = [sorted(math.dist(x[i], row) for row in y)[k - 1] for i in range(n)]
    return -dim / n * sum(math.log(a / b) for a, b in zip(r, s, strict=True)) + math.log(len(y) / (n - 1))


def test_the_worked_example(golden):
    case = golden("kl1")
    x, y = np.array(case["inputs"]["X"]), np.array(case["inputs"]["Xp"])
    assert kl_divergence(x, y) == pytest.approx(case["expected"]["kl"], abs=case["tol"])
    assert kl_divergence(y, x) == pytest.approx(case["expected"]["kl_reversed"], abs=case["tol"])


def test_neighbours_everywhere_c_times_as_far_add_d_ln_c(golden):
    inputs, c = golden("kl1_scale")["inputs"], golden("kl1_scale")["expected"]["c"]
    a, n = inputs["a"], 40
    x = 1000.0 * np.eye(n, a)  # pairs at distance 1, all else far away
    x[1::2] = x[::2]
    x[1::2, -1] += 1
    y = x.copy()
    y[:, -2] += c  # each row's nearest in y is itself, c away
    sizes = math.log(n / (n - 1)) - math.log(inputs["m"] / (inputs["n"] - 1))  # ours, the example's
    assert kl_divergence(x, y) == pytest.approx(inputs["delta"] + sizes, rel=1e-9)


@pytest.mark.parametrize("dim", [2, 8, 9, 40])
@pytest.mark.parametrize("k", [1, 3])
def test_equals_the_loops(dim, k):
    rng = np.random.default_rng(dim)
    x, y = 5 + rng.normal(size=(31, dim)), 5.5 + 0.7 * rng.normal(size=(17, dim))
    assert kl_divergence(x, y, k) == pytest.approx(by_hand(x, y, k), rel=1e-9)


def test_the_tree_and_all_distances_are_equal():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 8)), rng.normal(size=(9000, 8))  # more than one block
    for k in (1, 2, 5):
        expected = np.sort(cdist(x, y), axis=1)[:, k - 1]
        np.testing.assert_allclose(_all_distances(x, y, k), expected, rtol=1e-12)
    wider, same = np.hstack([x, np.zeros((500, 8))]), np.hstack([y, np.zeros((9000, 8))])
    assert kl_divergence(x, y) == pytest.approx(kl_divergence(wider, same) / 2 + math.log(9000 / 499) / 2)


def log_nearest(count, offsets, scale, dim):
    """E ln(distance) to the nearest of `count` draws from N(μ, scale² I), for points at ‖x−μ‖ = offsets.

    A draw's squared distance is scale² times a noncentral chi-squared variable, so P(nearest > t) is known;
    the expectation of ln t is the integral of that.
    """
    logs = np.linspace(math.log(1e-3), math.log(30 * math.sqrt(dim)), 500)
    within = ncx2.cdf(np.exp(2 * logs)[:, None] / scale**2, dim, (offsets / scale)[None] ** 2)
    return logs[0] + np.trapezoid((1 - within) ** count, logs, axis=0)


@pytest.mark.parametrize("dim", [2, 4, 8, 16, 32])
@pytest.mark.parametrize(("shift", "scale"), [(1.0, 1.0), (0.0, 1.5)])
def test_gaussians_give_what_theory_says_of_samples_of_this_size(dim, shift, scale):
    n, repeats = 500, 6
    rng = np.random.default_rng(dim)
    at = np.zeros(dim)
    at[0] = shift
    found = [
        kl_divergence(rng.normal(size=(n, dim)), at + scale * rng.normal(size=(n, dim)))
        for _ in range(repeats)
    ]
    x = rng.normal(size=(200, dim))
    near = log_nearest(n, np.linalg.norm(x - at, axis=1), scale, dim)
    own = log_nearest(n - 1, np.linalg.norm(x, axis=1), 1.0, dim)
    expected = dim * (near - own) + math.log(n / (n - 1))
    error = math.hypot(np.std(found, ddof=1) / math.sqrt(repeats), expected.std() / math.sqrt(len(x)))
    assert abs(np.mean(found) - expected.mean()) < 4 * error
    if dim == 2:  # where this size is enough: the divergence itself
        true = dim * (math.log(scale) + (1 / scale**2 - 1) / 2) + shift**2 / (2 * scale**2)
        assert abs(np.mean(found) - true) < 4 * error


@pytest.mark.parametrize("dim", [2, 4, 8, 16, 32])
def test_equal_distributions_have_none(dim):
    rng = np.random.default_rng(dim)
    found = [kl_divergence(*rng.normal(size=(2, 400, dim))) for _ in range(8)]
    assert abs(np.mean(found)) < 4 * np.std(found, ddof=1) / math.sqrt(len(found))


def test_blind_to_shift_rotation_and_scale():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 12)), rng.normal(size=(50, 12)) + 0.4
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    expected = kl_divergence(x, y)
    assert kl_divergence(1e-7 * x @ turn + 3, 1e-7 * y @ turn + 3) == pytest.approx(expected, rel=1e-6)
    assert kl_divergence(x.astype(np.float32), y.astype(np.float32)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dim", [3, 20])
def test_duplicates_are_finite_and_have_the_right_sign(dim):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, dim)), rng.normal(size=(40, dim))
    plain = kl_divergence(x, y)
    twice = kl_divergence(np.concatenate([x, x[:1]]), y)
    assert plain + 20 * dim / 40 < twice < math.inf
    assert -math.inf < kl_divergence(x, np.concatenate([y, x[:1]])) < plain - 20 * dim / 40
    assert kl_divergence(x, x) < -20 * dim  # encoders that coincide: as aligned as can be
    # Of three rows two are equal and in y too, so they count 0; the third has r = 2 and s = 1.
    rows, others = np.zeros((3, dim)), np.zeros((2, dim))
    rows[2, 0], others[1, 0] = 2, 3
    assert kl_divergence(rows, others) == pytest.approx(dim / 3 * math.log(1 / 2) + math.log(2 / 2))


@pytest.mark.parametrize("dim", [3, 20])
def test_rows_that_coincide_are_left_out_and_where_many_do_there_is_no_estimate(dim):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 300, dim))
    assert divergence(x, y) == Divergence(pytest.approx(kl_divergence(x, y)), 0, 300)
    noise = 1e-7 * rng.normal(size=(300, dim))
    for count in (1, 3):
        near = np.concatenate([y, x[:count] + noise[:count]])
        found, sizes = divergence(x, near), math.log(len(near) / 299)
        assert (found.coincident, found.rows) == (count, 300)
        kept = [math.log(a / b) for a, b in zip(*distances(x, near), strict=True)][count:]
        assert found.kl == pytest.approx(dim * np.mean(kept) + sizes)
    for other in (x, x + noise, np.concatenate([y, x[:4]])):
        found = divergence(x, other)
        assert found.kl is None and found.coincident == (4 if len(other) == 304 else 300)
        assert kl_divergence(x, other) < kl_divergence(x, y)
    twice = np.concatenate([x, x[:2] + noise[:2]])
    assert divergence(twice, y) == Divergence(None, 4, 302)
    with pytest.raises(DataError, match="one point"):
        divergence(np.ones((5, dim)), np.ones((5, dim)))


def distances(x, y):
    """The distance of each row of x to its nearest in y, and to its nearest other row of x."""
    own = cdist(x, x)
    np.fill_diagonal(own, np.inf)
    return cdist(x, y).min(1), own.min(1)


def test_a_point_against_another_is_far_and_one_point_has_none():
    point = np.ones((5, 4))
    assert kl_divergence(point, 2 * point) > 100
    with pytest.raises(DataError, match="one point"):
        kl_divergence(point, point)


def test_what_cannot_be_estimated_says_why():
    x = np.random.default_rng(0).normal(size=(4, 3))
    with pytest.raises(ConfigError, match="k must be at least 1"):
        kl_divergence(x, x, 0)
    with pytest.raises(ShapeError, match="5 rows of x and 4 of y, found 4 and 4"):
        kl_divergence(x, x, 4)
    with pytest.raises(ShapeError, match="3 components, but y of 2"):
        kl_divergence(x, x[:, :2])
    with pytest.raises(DataError, match="1 of 4 vectors are not finite"):
        kl_divergence(x, np.where(np.arange(12).reshape(4, 3) == 5, math.nan, x))
    for measure in (mean_cosine, spread, spectrum, profile):
        with pytest.raises(ShapeError, match="at least two vectors, found 1"):
            measure(x[:1])
    with pytest.raises(ShapeError):
        cross_cosine(x, x[:, :2])


SAMPLES = arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.integers(-3, 3))


@given(SAMPLES, SAMPLES)
def test_cosines_equal_the_loops(x, y):
    def cosine(a, b):
        norms = np.linalg.norm(a) * np.linalg.norm(b)
        return a @ b / norms if norms else 0.0

    pairs = [cosine(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j]
    assert mean_cosine(x) == pytest.approx(np.mean(pairs), abs=1e-12)
    y = np.resize(y, (len(y), x.shape[1]))
    assert cross_cosine(x, y) == pytest.approx(np.mean([cosine(a, b) for a in x for b in y]), abs=1e-12)


def test_the_spectrum_is_that_of_the_covariance():
    for n, dim in ((50, 6), (5, 9)):
        x = 7 + np.random.default_rng(n).normal(size=(n, dim)) * np.arange(1, dim + 1)
        expected = np.sort(np.linalg.eigvalsh(np.cov(x.T)))[::-1][: min(n - 1, dim)]
        np.testing.assert_allclose(spectrum(x), expected, rtol=1e-9)


def test_ranks_of_equal_variances_are_their_number():
    for k in (1, 3, 7):
        variances = np.array([2.0] * k + [0.0] * 4)
        assert participation_ratio(variances) == pytest.approx(k)
        assert entropy_rank(variances) == pytest.approx(k)
        assert first_share(variances) == pytest.approx(1 / k)
    uneven = np.array([9.0, 1.0])  # √: 3 and 1, so p = ¾, ¼
    assert participation_ratio(uneven) == pytest.approx(100 / 82)
    assert entropy_rank(uneven) == pytest.approx(math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25)))
    assert first_share(uneven) == pytest.approx(0.9)
    nothing = np.zeros(3)
    assert (participation_ratio(nothing), entropy_rank(nothing), first_share(nothing)) == (0, 0, 1)


def test_each_number_sees_what_the_others_do_not():
    rng = np.random.default_rng(0)
    healthy = rng.normal(size=(300, 16))
    offset = healthy + 40 * np.eye(1, 16)  # complete collapse: nearly one point, seen from the origin
    flat = healthy * (np.arange(16) < 2)  # dimensional collapse
    assert profile(offset).cosine > 0.98 and abs(profile(flat).cosine) < 0.02
    assert profile(offset).spread < 0.15 and profile(flat).spread > 0.9
    assert profile(offset).rank == pytest.approx(profile(healthy).rank)
    assert profile(flat).rank < 2.001 < 10 < profile(healthy).rank
    assert profile(healthy).dimension == 16 and profile(healthy).rows == 300


def test_spread_by_hand():
    assert spread(np.array([[1.0, 0.0], [3.0, 0.0]])) == pytest.approx(2 / 4)
    assert spread(np.zeros((3, 2))) == 0


def test_texts_of_the_same_words_count_once():
    texts = ["What is x?", "b", "what is X", "?", "!", "?", "  what is  x", "is what x"]
    assert distinct_texts(texts) == ["What is x?", "b", "?", "!", "is what x"]


def test_rows_that_differ_by_rounding_coincide_however_close_all_of_them_are():
    """Equal encoders on a CPU whose kernels round by the shape of a batch; all vectors in a narrow cone."""
    rng = np.random.default_rng(0)
    rows = 1.0 + 0.03 * rng.normal(size=(50, 16))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    moved = rows + rng.normal(size=rows.shape) * 1.5e-7
    found = divergence(rows, moved)
    assert found.kl is None and found.coincident == 50
    assert divergence(rows, rows + rng.normal(size=rows.shape) * 1e-3).coincident == 0


@pytest.mark.parametrize("measure", [participation_ratio, entropy_rank, first_share])
def test_rows_are_no_variances(measure):
    with pytest.raises(ShapeError, match=r"expected variances.* of 2 dimensions; use spectrum\(rows\)"):
        measure(np.ones((3, 2)))
