"""Matrices of 8-bit integers: how far rounding goes, and products next to those of whole numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.onnx_encoder.eight_bits import BLOCK, product, rounded, rounded_rows

SHAPES = [(64, 384), (32, 16), (8, 24), (33, 200), (1, 1), (5, 129)]
SIZES = [0.0, 1e-35, 1e-20, 1.0, 1e6]


def normal(seed, *shape, size=1.0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * np.float32(size)


def by_output(matrix):
    """Integers and scales of each output, in float64."""
    integers = matrix.whole().astype(np.float64).transpose(2, 0, 1)
    scales = matrix.scales.transpose(0, 2, 1).reshape(-1, matrix.scales.shape[1])[: matrix.outputs]
    return integers, scales.astype(np.float64)


@settings(deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 2**32), st.sampled_from(SIZES))
def test_every_weight_is_within_half_a_step(shape, seed, size):
    weights = normal(seed, *shape, size=size)
    integers, scales = by_output(rounded(weights))
    assert np.abs(integers).max() <= 127 and np.isfinite(scales).all()
    found = (integers * scales[:, :, None]).reshape(shape[0], -1)
    steps = np.repeat(scales, BLOCK, axis=1)[:, : shape[1]]
    if size >= 1e-20:  # smaller blocks become zeros
        assert (np.abs(found[:, : shape[1]] - weights) <= 0.5001 * steps).all()
    assert not found[:, shape[1] :].any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("size", SIZES)
def test_a_product_is_that_of_whole_numbers(shape, count, size):
    rows, bias = normal(1, count, shape[1], size=size), normal(2, shape[0])
    matrix = rounded(normal(3, *shape))
    integers, scales = by_output(matrix)
    of_rows, whole = rounded_rows(rows)
    sums = np.einsum("nbk,obk->nbo", whole.astype(np.int64), integers.astype(np.int64))
    wanted = np.einsum("nbo,nb,ob->no", sums, of_rows.astype(np.float64), scales) + bias
    found = product(rows, matrix, bias)
    assert found.shape == (count, shape[0]) and found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * max(1, size))


def test_a_large_component_makes_only_its_own_block_coarser():
    rows = normal(1, 1, 2 * BLOCK)
    rows[0, 0] = 1000
    scales, integers = rounded_rows(rows)
    assert scales[0, 0] == np.float32(1000) / np.float32(127) and scales[0, 1] < 0.05
    assert np.count_nonzero(integers[0, 0]) == 1
    assert np.abs(integers[0, 1] * scales[0, 1] - rows[0, BLOCK:]).max() <= scales[0, 1] * 0.5001


def test_a_tile_says_the_sums_of_its_integers():
    matrix = rounded(normal(1, 20, 300))
    sums = matrix.sums.transpose(0, 2, 1).reshape(-1, matrix.sums.shape[1])
    np.testing.assert_array_equal(sums[:20], matrix.whole().sum(1).T)
    assert not sums[20:].any()
