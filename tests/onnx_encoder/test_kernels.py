"""The compiled encoder gives numpy's numbers, to the last bit, and is used once that is worth loading it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.index import paths
from counterpoint.onnx_encoder.eight_bits import rounded
from counterpoint.onnx_encoder.kernels import BY_NUMPY, Chooser, Kernels, agrees, compiled_kernels

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.sampled_from([0.0, 1e-35, 1e-20, 1.0, 1e6])


@pytest.fixture(scope="module")
def compiled():
    if paths._loaded() is None:
        pytest.skip("numba is not installed")
    found = compiled_kernels()
    assert found is not None
    return found


def normal(seed, *shape, size=1.0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * np.float32(size)


def same(one, other):
    return one.shape == other.shape and one.tobytes() == other.tobytes()


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 70), st.integers(1, 300), st.integers(1, 70), SEEDS, SIZES)
def test_products(compiled, count, inputs, outputs, seed, size):
    rows, bias = normal(seed, count, inputs, size=size), normal(seed + 1, outputs)
    rows[np.random.default_rng(seed).random(rows.shape) < 0.3] = 0
    matrix = rounded(normal(seed + 2, outputs, inputs, size=size))
    assert same(compiled.product(rows, matrix, bias), BY_NUMPY.product(rows, matrix, bias))


@pytest.mark.parametrize("count", range(1, 34))
def test_the_largest_products(compiled, count):
    """All integers are 127 or −127, so that sums are the largest there are."""
    signs = np.sign(normal(count, count + 40, 1536))
    rows, matrix, bias = signs[:count], rounded(signs[count:]), normal(1, 40)
    assert same(compiled.product(rows, matrix, bias), BY_NUMPY.product(rows, matrix, bias))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 40), st.integers(1, 5), st.integers(1, 40), SEEDS, st.sampled_from([1e-3, 1.0, 30.0]))
def test_attention(compiled, positions, heads, each, seed, size):
    made = normal(seed, positions, 3 * heads * each, size=size)
    bias = np.where(normal(seed + 1, positions) < 1, np.float32(0), np.finfo(np.float32).min)
    said = {"heads": heads, "scale": np.float32(each**-0.5)}
    assert same(compiled.attended(made, bias, **said), BY_NUMPY.attended(made, bias, **said))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 30), st.integers(1, 100), SEEDS, st.sampled_from([0.0, 1e-3, 1.0, 1e4]))
def test_other_steps(compiled, count, width, seed, size):
    rows, (weight, bias) = normal(seed, count, width, size=size), normal(seed + 1, 2, width)
    assert same(compiled.gelu(rows), BY_NUMPY.gelu(rows))
    given_all = rows, weight, bias, np.float32(1e-12)
    assert same(compiled.normalised(*given_all), BY_NUMPY.normalised(*given_all))


@pytest.mark.parametrize("name", Kernels._fields)
def test_every_kernel_is_checked(compiled, name):
    def wrong(*asked, **said):
        found = getattr(compiled, name)(*asked, **said).copy()
        found.flat[-1] += 1
        return found

    assert agrees(compiled)
    assert not agrees(compiled._replace(**{name: wrong}))


def test_numpy_computes_until_compiled_kernels_are_worth_loading(compiled, monkeypatch):
    monkeypatch.setattr(paths.Meter, "is_worth_it", lambda self, nanoseconds: nanoseconds >= 100)
    assert Chooser(1).kernels(20) is BY_NUMPY
    assert Chooser(1000).kernels(20) == compiled
