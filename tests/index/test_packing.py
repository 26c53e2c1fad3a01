import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.index.packing import WIDTHS, pack, unpack, unpack_all

NUMBERS = st.one_of(
    st.integers(0, 3),
    st.integers(0, 300),
    st.integers(0, 2**32 - 1),
    st.sampled_from([2**w - 1 for w in WIDTHS]),
)


def lists_of(packed, sizes, counts):
    """Every list unpacked, from its first byte to the end of all."""
    starts = np.cumsum(sizes) - sizes
    found = [unpack(packed[start:], count) for start, count in zip(starts, counts, strict=True)]
    assert [used for _, used in found] == list(sizes)
    return [values.tolist() for values, _ in found]


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=40), min_size=1, max_size=12))
def test_what_was_packed_is_unpacked(lists):
    counts = np.array([len(numbers) for numbers in lists])
    packed, sizes = pack(np.concatenate([np.array(numbers, np.int64) for numbers in lists]), counts)
    assert packed.dtype == np.uint8 and len(packed) == sizes.sum()
    assert lists_of(packed, sizes, counts) == lists


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=40), min_size=1, max_size=12), st.data())
def test_many_lists_are_unpacked_as_each_of_them_is(lists, data):
    """Also where others lie between them."""
    counts = np.array([len(numbers) for numbers in lists])
    packed, sizes = pack(np.concatenate([np.array(numbers, np.int64) for numbers in lists]), counts)
    chosen = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(lists), max_size=len(lists))))
    starts = (np.cumsum(sizes) - sizes)[chosen]
    values, used = unpack_all(packed, starts, counts[chosen])
    assert values.tolist() == [number for i in chosen for number in lists[i]]
    assert used.tolist() == sizes[chosen].tolist()


@given(st.binary(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=4))
def test_many_lists_of_any_bytes_are_refused_where_one_of_them_is(content, asked):
    packed = np.frombuffer(content, np.uint8)
    starts, counts = (np.array(x, np.int64) for x in (list(zip(*asked, strict=True)) or ([], [])))
    try:
        found = [unpack(packed[start:], count) for start, count in asked]
    except ValueError:
        with pytest.raises(ValueError, match=r"packed list"):
            unpack_all(packed, starts, counts)
    else:
        values, used = unpack_all(packed, starts, counts)
        assert values.tolist() == [number for each, _ in found for number in each]
        assert used.tolist() == [size for _, size in found]


@given(st.lists(NUMBERS, min_size=1, max_size=40))
def test_no_other_width_is_shorter(numbers):
    values = np.array(numbers, np.int64)
    (size,) = pack(values, np.array([len(values)]))[1]
    lengths = []
    for bits in WIDTHS:
        exceptions = 0 if bits == 32 else sum(n >= max(2**bits - 1, 1) for n in numbers)
        if bits or not exceptions:
            lengths.append(1 + -(-len(numbers) * bits // 8) + 4 * exceptions)
    assert size == min(lengths)


@pytest.mark.parametrize(
    ("numbers", "size"),
    [
        ([0] * 1000, 1),
        ([0, 1, 2] * 8, 1 + 6),
        ([0, 1, 2] * 8 + [70000], 1 + 7 + 4),
        ([14] * 10, 1 + 5),
        ([254] * 5, 1 + 5),
        ([255] * 5, 1 + 10),
        ([2**32 - 1] * 3, 1 + 12),
    ],
)
def test_sizes(numbers, size):
    assert pack(np.array(numbers), np.array([len(numbers)]))[1].tolist() == [size]


def test_bytes_are_those_of_the_description():
    packed, sizes = pack(np.array([2, 0, 1, 2, 300, 300]), np.array([5, 1]))
    assert packed.tolist() == [2, 0b10_01_00_10, 0b11, 44, 1, 0, 0, 5, 44, 1] and sizes.tolist() == [7, 3]


@pytest.mark.parametrize("damage", [[], [7], [200, 0, 0], [4, 1, 2], [2, 0b11, 1, 0, 0], [6, 1, 2, 3, 4, 5]])
def test_what_is_no_packed_list_is_refused(damage):
    with pytest.raises(ValueError, match=r"packed list"):
        unpack(np.array(damage, np.uint8), 3)
