import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from counterpoint.errors import ConfigError, DataError, NotFittedError, ShapeError
from counterpoint.part import Part
from counterpoint.transform import Moments, Whitening
from counterpoint.transform.whitening import oracle_shrinkage
from counterpoint.vectors import Vectors

GOLDEN = Path(__file__).parents[2].parent / "shared" / "golden" / "golden.json"


def case(name):
    found = next(c for c in json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"] if c["id"] == name)
    return found["inputs"], found["expected"]


def sample(n, dim=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim)) + 5


def apply(transform, rows):
    values = torch.as_tensor(rows)[None]
    return transform(Vectors(values, torch.ones(1, len(rows), dtype=torch.bool))).values[0]


@pytest.mark.shared
def test_the_papers_example():
    inputs, expected = case("whitening")
    rows = np.array(inputs["X"])
    with pytest.warns(UserWarning, match="at least 20"):
        whitening = Whitening(2).fit([rows])
    z = apply(whitening, rows).numpy()
    np.testing.assert_allclose(np.abs(z), expected["abs_Z"], atol=1e-6)
    np.testing.assert_allclose(z @ z.T, expected["gram"], atol=1e-6)
    np.testing.assert_allclose(whitening.mean_, expected["mu"], atol=1e-6)


@pytest.mark.shared
def test_the_papers_streamed_moments():
    inputs, expected = case("whitening_streaming")
    moments = Moments(2)
    moments.update(np.array(inputs["batch_a"]))
    moments.update(torch.tensor(inputs["batch_b"]))
    np.testing.assert_allclose(moments.mean, expected["mean"], atol=1e-12)
    np.testing.assert_allclose(moments.covariance(), expected["cov"], atol=1e-12)


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.floats(0, 1e6))
def test_moments_do_not_depend_on_the_pieces(sizes, offset):
    rows = sample(sum(sizes) + 2) + offset
    moments = Moments(4)
    for piece in np.split(rows, np.cumsum(sizes)):
        moments.update(piece)
    assert moments.count == len(rows)
    np.testing.assert_allclose(moments.mean, rows.mean(0), rtol=1e-12)
    np.testing.assert_allclose(moments.covariance(), np.cov(rows.T), rtol=1e-8, atol=1e-8)


def test_whitened_rows_have_mean_zero_and_unit_covariance():
    rows = sample(500)
    z = apply(Whitening(4).fit(np.array_split(rows, 7)), rows).numpy()
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(np.cov(z.T), np.eye(4), atol=1e-5)


@settings(deadline=None)
@given(st.integers(1, 30), st.floats(-100, 100), st.sampled_from([-0.5, -0.25, 0.0]))
def test_recentred_rows_of_elsewhere_come_out_as_if_they_were_from_here(pieces, offset, power):
    """Only the mean is other: rows moved by any vector, and recentred, are mapped as they were before."""
    rows = sample(400)
    moved = rows + offset * np.array([1, -2, 0.5, 3])
    before = Whitening(4, rank=3, power=power).fit([rows])
    matrix, wanted = before.matrix_.clone(), apply(before, rows)
    after = before.recentre(np.array_split(moved, pieces))
    np.testing.assert_allclose(after.mean_, moved.mean(0), rtol=1e-5, atol=1e-4)
    assert torch.equal(after.matrix_, matrix) and after.count_ == 400
    assert_close(apply(after, moved), wanted, atol=2e-4, rtol=2e-4)


def test_what_cannot_be_recentred():
    rows = sample(100)
    with pytest.raises(NotFittedError):
        Whitening(4).recentre([rows])
    with pytest.raises(ConfigError, match="centre is False"):
        Whitening(4, centre=False).fit([rows]).recentre([rows])
    fitted = Whitening(4).fit([rows])
    mean = fitted.mean_.clone()
    for wrong, error in (([], DataError), ([rows[:0]], DataError), ([rows[:, :3]], ShapeError)):
        with pytest.raises(error):
            fitted.recentre(wrong)
    with pytest.raises(DataError, match="NaN or infinite"):
        fitted.recentre([np.full((1, 4), np.nan)])
    assert torch.equal(fitted.mean_, mean)


def test_rank_keeps_the_leading_directions():
    rows = sample(500)
    full, two = apply(Whitening(4).fit([rows]), rows), apply(Whitening(4, rank=2).fit([rows]), rows)
    assert two.shape == (500, 2)
    assert_close(two, full[:, :2])


def test_power_zero_is_principal_components():
    rows = sample(500)
    z = apply(Whitening(4, power=0.0).fit([rows]), rows).numpy()
    values = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    np.testing.assert_allclose(np.cov(z.T), np.diag(values), atol=1e-4)


def test_without_centring_the_second_moment_is_the_identity():
    rows = sample(500)
    whitening = Whitening(4, centre=False).fit([rows])
    z = apply(whitening, rows).numpy()
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(4), atol=1e-4)
    assert not whitening.mean_.any()


def test_signs_and_result_do_not_depend_on_the_order_of_the_rows():
    rows = sample(200)
    assert_close(Whitening(4).fit([rows]).matrix_, Whitening(4).fit([rows[::-1].copy()]).matrix_)
    matrix = Whitening(4).fit([rows]).matrix_
    largest = matrix.abs().argmax(0)
    assert (matrix[largest, torch.arange(4)] > 0).all()


def test_flat_directions_are_dropped_and_reported():
    rows = sample(100)
    rows[:, 3] = rows[:, 0] + rows[:, 1]
    with pytest.warns(UserWarning, match="vary in 3 directions only, so 1 of 4 components"):
        whitening = Whitening(4).fit([rows])
    z = apply(whitening, rows)
    assert whitening.kept == 3 and torch.isfinite(z).all() and not z[:, 3].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Whitening(4, rank=3).fit([rows]).kept == 3


def test_few_rows_are_reported():
    with pytest.warns(UserWarning, match="fitted on 39 vectors of 4 components"):
        Whitening(4).fit([sample(39)])


def test_shrinkage_draws_the_spectrum_to_its_mean():
    rows = sample(500)
    spread = np.cov(rows.T)
    for share in (0.0, 0.3, 1.0):
        z = apply(Whitening(4, shrinkage=share).fit([rows]), rows).numpy()
        values, directions = np.linalg.eigh(spread)
        wanted = np.zeros_like(spread)
        for value, direction in zip(values, directions.T, strict=True):
            wanted += np.outer(direction, direction) / ((1 - share) * value + share * values.mean())
        centred = rows - rows.mean(0)
        np.testing.assert_allclose(z @ z.T, centred @ wanted @ centred.T, atol=1e-3)


def test_the_leading_directions_do_not_depend_on_shrinkage():
    rows = torch.randn(400, 4, generator=torch.manual_seed(3)) * torch.tensor([0.1, 9.0, 2.0, 5.0])
    for share in (0.0, 0.5, 1.0):
        matrix = Whitening(4, rank=2, shrinkage=share).fit([rows]).matrix_
        assert matrix.abs().argmax(0).tolist() == [1, 3], share


def test_the_oracle_shrinkage_by_loops_and_what_it_is_for():
    rng = np.random.default_rng(1)
    true = np.diag(np.linspace(0.5, 2, 20))
    rows = rng.multivariate_normal(np.zeros(20), true, size=30)
    spread = np.cov(rows.T)
    squares = sum(spread[i, j] ** 2 for i in range(20) for j in range(20))
    square = sum(spread[i, i] for i in range(20)) ** 2
    wanted = ((1 - 2 / 20) * squares + square) / ((30 + 1 - 2 / 20) * (squares - square / 20))
    share = oracle_shrinkage(torch.from_numpy(spread), 30)
    assert share == pytest.approx(wanted) and 0.2 < share < 1
    shrunk = (1 - share) * spread + share * np.trace(spread) / 20 * np.eye(20)
    assert np.linalg.norm(shrunk - true) < 0.6 * np.linalg.norm(spread - true)
    assert oracle_shrinkage(torch.from_numpy(spread), 100_000) < 1e-3
    assert oracle_shrinkage(torch.eye(5).double(), 10) == 1.0
    named, told = Whitening(20, shrinkage=share).fit([rows]), Whitening(20, shrinkage="oas").fit([rows])
    assert_close(named.matrix_, told.matrix_)


def test_with_shrinkage_few_rows_are_enough_for_every_direction():
    rows = sample(6, dim=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Whitening(10, shrinkage="oas").fit([rows]).kept == 10


def test_moments_of_a_stream_that_drifts():
    rows = sample(3000) + np.linspace(-1e4, 1e4, 3000)[:, None]
    moments = Moments(4)
    for piece in np.array_split(rows, 30):
        moments.update(piece)
    np.testing.assert_allclose(moments.mean, rows.mean(0), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(moments.covariance(), np.cov(rows.T), rtol=1e-9)


def test_zero_rows():
    rows = np.vstack([sample(100), np.zeros((1, 4))])
    found = apply(Whitening(4).fit([rows]), rows)
    assert not found[-1].any() and found[:-1].any(1).all()


def test_normalised_rows_have_length_one():
    rows = sample(100)
    z = apply(Whitening(4, normalise=True).fit([rows]), rows)
    assert_close(z.norm(dim=-1), torch.ones(100, dtype=z.dtype))


def test_fitting_again_forgets():
    whitening = Whitening(4).fit([sample(100)])
    again = whitening.fit([sample(200, seed=1)])
    assert torch.equal(again.matrix_, Whitening(4).fit([sample(200, seed=1)]).matrix_)
    assert whitening.count_ == 200


def test_reads_the_rows_in_one_pass_of_any_type():
    rows = sample(100).astype(np.float32)
    pieces = iter([rows[:50], torch.from_numpy(rows[50:]), rows[:0]])
    assert_close(Whitening(4).fit(pieces).matrix_, Whitening(4).fit([rows]).matrix_)


def test_half_precision_in_and_out():
    rows = sample(100)
    found = apply(Whitening(4).fit([rows]), torch.as_tensor(rows).bfloat16())
    assert found.dtype == torch.bfloat16


def test_what_is_wrong_is_named(tmp_path):
    for rank in (0, 5):
        with pytest.raises(ConfigError, match=f"rank {rank} and dim 4"):
            Whitening(4, rank=rank)
    for share in (-0.1, 1.5, "lw"):
        with pytest.raises(ConfigError, match=f"shrinkage must be 'oas' or from 0 to 1, found {share!r}"):
            Whitening(4, shrinkage=share)
    with pytest.raises(ShapeError, match=r"rows of 4 components, found shape \(2, 3\)"):
        Whitening(4).fit([np.ones((2, 3))])
    with pytest.raises(DataError, match="NaN or infinite"):
        Whitening(4).fit([np.full((2, 4), np.nan)])
    with pytest.raises(DataError, match="found 0"):
        Whitening(4).fit([])
    with pytest.raises(DataError, match="all 50 are equal"):
        Whitening(4).fit([np.full((50, 4), 0.1)])
    Whitening(4).save(tmp_path / "unfitted")
    unfitted = Part.load(tmp_path / "unfitted")
    with pytest.raises(NotFittedError, match="fit"):
        apply(unfitted, sample(2))
    with pytest.raises(ShapeError, match="fitted on vectors of 4 components, found 3"):
        apply(Whitening(4).fit([sample(100)]), sample(5, dim=3))
