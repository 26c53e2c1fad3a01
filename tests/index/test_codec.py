import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from counterpoint.index.codec import CODECS, Bits, rounded
from counterpoint.testing import check_codec

WHOLE = [name for name, codec in CODECS.items() if not isinstance(codec, Bits)]
rows = hnp.arrays(
    np.float32,
    st.tuples(st.integers(0, 6), st.integers(1, 9)),
    elements=st.floats(-1000, 1000, width=16),
)


@pytest.mark.parametrize("name", CODECS)
def test_keeps_every_rule(name):
    check_codec(lambda: CODECS[name])


@pytest.mark.parametrize("name", CODECS)
@given(values=rows)
def test_a_codec_writes_what_its_layout_says(name, values):
    codec = CODECS[name]
    arrays = codec.encode(values)
    layout = codec.layout(values.shape[1])
    assert arrays.keys() == layout.keys()
    for key, (dtype, shape) in layout.items():
        assert arrays[key].dtype == dtype and arrays[key].shape == (len(values), *shape)
    decoded = codec.decode(arrays, values.shape[1])
    assert decoded.dtype == np.float32 and decoded.shape == values.shape


@given(values=rows)
def test_floats_come_back_as_they_are(values):
    for name in ("float32", "float16"):
        np.testing.assert_array_equal(
            CODECS[name].decode(CODECS[name].encode(values), values.shape[1]), values
        )


@pytest.mark.parametrize("name, most", [("int8", 127), ("int4", 7)])
@given(values=rows)
def test_integers_err_by_at_most_half_a_step(name, most, values):
    arrays = CODECS[name].encode(values)
    decoded = CODECS[name].decode(arrays, values.shape[1])
    steps = arrays["scales"].astype(np.float32)[:, None]
    assert (np.abs(decoded - values) <= 0.5001 * steps + 1e-7).all()
    assert (np.abs(decoded) <= most * steps).all()


def test_int4_packs_two_components_a_byte():
    arrays = CODECS["int4"].encode(np.array([[7.0, -7.0, 3.0]], np.float32))
    assert arrays["values"].tolist() == [[15 | 1 << 4, 11 | 8 << 4]] and arrays["scales"].tolist() == [1.0]
    assert CODECS["int4"].decode(arrays, 3).tolist() == [[7.0, -7.0, 3.0]]


BITS = {"1-bit": 1, "2-bit": 2, "4-bit": 4}


@pytest.mark.parametrize("name, bits", BITS.items())
@given(values=rows)
def test_codes_of_bits_keep_a_rows_length_in_its_own_direction(name, bits, values):
    """⟨x, x̂⟩ = |x|²: what makes products unbiased over rotations (RaBitQ, theorem 3.2)."""
    codec, dim = CODECS[name], values.shape[1]
    arrays = codec.encode(values)
    assert arrays["values"].shape == (len(values), -(-dim * bits // 8))
    along = (codec.decode(arrays, dim).astype(np.float64) * values).sum(axis=1)
    lengths = (values.astype(np.float64) ** 2).sum(axis=1)
    fits = np.isfinite(arrays["scales"]) & (arrays["scales"] > 1e-3)
    np.testing.assert_allclose(along[fits], lengths[fits], rtol=2e-3)
    assert (along[lengths == 0] == 0).all()


@pytest.mark.parametrize("name, bits", BITS.items())
def test_codes_are_odd_integers_in_their_order(name, bits):
    codec, rng = CODECS[name], np.random.default_rng(0)
    for dim in (1, 7, 8, 376):
        rotated = rng.normal(size=(5, dim)).astype(np.float32)
        packed = codec.packed(rotated)["values"]
        integers = codec.integers(packed, dim)
        top = 2**bits - 1
        assert set(np.unique(integers)) <= set(range(-top, top + 1, 2))
        for row, values in zip(integers, packed, strict=True):
            stream = "".join(f"{int(byte):08b}"[::-1] for byte in values)
            levels = [int(stream[i * bits : (i + 1) * bits][::-1], 2) for i in range(dim)]
            assert [2 * level - top for level in levels] == row.tolist()
        if bits == 1:
            assert (np.sign(integers) == np.where(rotated >= 0, 1, -1)).all()


@pytest.mark.parametrize("name, most", [("1-bit", 0.37), ("2-bit", 0.125), ("4-bit", 0.012)])
def test_error_of_codes_is_near_what_so_many_bits_allow(name, most):
    """The squared error of the best multiple, over that of nothing: Lloyd and Max give .363, .118, .0095."""
    values = np.random.default_rng(0).normal(size=(300, 376)).astype(np.float32)
    decoded = CODECS[name].decode(CODECS[name].encode(values), 376)
    cosine = (decoded * values).sum(1) / np.linalg.norm(decoded, axis=1) / np.linalg.norm(values, axis=1)
    assert 1 - (cosine**2).mean() < most


small = st.floats(-(2**-7), 2**-7, width=32)


@pytest.mark.parametrize("name", WHOLE)
@given(values=rows | hnp.arrays(np.float32, st.tuples(st.integers(0, 6), st.integers(2, 9)), elements=small))
def test_decoded_rows_are_coded_as_they_were(name, values):
    """Down to the smallest scales, which float16 has only in steps of 2^-24."""
    codec = CODECS[name]
    once = codec.encode(values)
    decoded = codec.decode(once, values.shape[1])
    again = codec.encode(decoded)
    assert np.array_equal(codec.decode(again, values.shape[1]), decoded)


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_rows_that_are_too_large_are_not_taken_for_zeros(name):
    with np.errstate(over="ignore"):
        assert np.isinf(CODECS[name].encode(np.full((1, 4), 1e38, np.float32))["scales"]).all()


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_decoded_rows_have_the_same_codes_at_every_scale(name):
    rng, codec = np.random.default_rng(0), CODECS[name]
    values = rng.normal(size=(50_000, 16)) * 10 ** rng.uniform(-9, 2, (50_000, 1))
    once = codec.encode(values.astype(np.float32))
    again = codec.encode(codec.decode(once, 16))
    for array in once:
        np.testing.assert_array_equal(again[array], once[array])


ROWS = hnp.arrays(
    np.float32, st.tuples(st.integers(0, 5), st.integers(1, 9)), elements=st.floats(-100, 100, width=32)
)


@given(rows=ROWS)
def test_rounding_errs_by_half_a_step(rows):
    found = rounded(rows)
    assert np.abs(found.rows).max(initial=0) <= 127 and (found.rows == np.rint(found.rows)).all()
    error = np.abs(found.rows * found.scales[:, None] - rows)
    assert (error <= found.scales[:, None] * 0.5001 + 1e-30).all()


def test_products_are_exact_where_floats_could_not_hold_the_sums():
    rng = np.random.default_rng(0)
    query = rounded(rng.normal(size=(3, 9000)).astype(np.float32))
    other = rng.integers(-127, 128, (4, 9000)).astype(np.float32)
    exact = query.rows.astype(np.int64) @ other.T.astype(np.int64)
    assert query.times(other, 127).tolist() == exact.astype(np.float32).tolist()
