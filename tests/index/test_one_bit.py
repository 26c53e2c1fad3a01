"""Scores of rows of one bit per component, which compiled kernels look up where the processor can."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.index import paths
from counterpoint.index.codec import Bits, Rounded
from counterpoint.index.kernels import maxsim_by

ONE_BIT = Bits(1)


def compiled(query, stored, offsets, words, floor):
    kernels = paths._loaded()
    if kernels is None:
        pytest.skip("numba is not installed")
    (values, factors), (numbers, means, centres) = stored, words
    asked = kernels.asked(query)
    more = ((0, len(asked[1]) - len(query.rows)), (0, 0))
    tables = tuple(np.pad(each, more).T.copy() for each in (means, centres))
    packed = numbers.view(np.uint8).reshape(len(numbers), numbers.itemsize)
    where = np.arange(means.shape[1]), offsets[:-1], offsets[1:]
    rows = values, factors.view(np.uint16), packed, 1
    return kernels.maxsim(asked, tables, rows, where, kernels.halves, floor)


def by_loops(query, stored, offsets, words, floor):
    (values, factors), (numbers, means, centres) = stored, words
    inner = query.times(ONE_BIT.integers(values, query.rows.shape[1]), 1) * factors.astype(np.float32)
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    found = (inner + means[:, numbers] + centres[:, owners]) * query.scales[:, None]
    both = np.array([0, len(query.rows)]), offsets
    return maxsim_by(lambda where: lambda asked: found[asked, where], both, floor=floor)[0]


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.one_of(st.sampled_from([127, 128, 129, 256, 257, 384]), st.integers(1, 700)),
    asked=st.integers(1, 40),
    lengths=st.lists(st.one_of(st.integers(0, 3), st.integers(60, 70), st.integers(0, 150)), max_size=8),
    floor=st.booleans(),
)
def test_compiled_scores_are_those_of_numpy(seed, dim, asked, lengths, floor):
    rng, count = np.random.default_rng(seed), sum(lengths)
    query = Rounded(
        rng.integers(-127, 128, (asked, dim)).astype(np.float32), rng.random(asked).astype(np.float32)
    )
    values = rng.integers(0, 256, (count, -(-dim // 8)), np.uint8)
    values[:, -1] &= np.uint8(255 >> (-dim % 8))
    stored = values, rng.random(count).astype(np.float16)
    numbers = rng.integers(0, 9, count).astype((np.uint16, np.uint32)[seed % 2])
    tables = (rng.normal(size=(asked, n)).astype(np.float32) for n in (9, len(lengths)))
    given_all = query, stored, np.cumsum([0, *lengths]), (numbers, *tables), floor
    assert compiled(*given_all).tobytes() == by_loops(*given_all).tobytes()


@pytest.mark.parametrize("dim", [128, 256, 257, 1024])
@pytest.mark.parametrize("sign", [-127, 127])
def test_the_largest_sums_do_not_overflow(dim, sign):
    """Sums of 256 components are held in 16 bits."""
    query = Rounded(np.full((3, dim), sign, np.float32), np.ones(3, np.float32))
    values = np.packbits(np.ones((5, dim), bool), axis=1, bitorder="little")
    stored, offsets = (values, np.ones(5, np.float16)), np.array([0, 5])
    words = np.zeros(5, np.uint16), np.zeros((3, 1), np.float32), np.zeros((3, 1), np.float32)
    assert compiled(query, stored, offsets, words, False).tolist() == [3 * dim * sign]
