import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from counterpoint.index.codec import CODECS

rows = hnp.arrays(
    np.float32,
    st.tuples(st.integers(0, 6), st.integers(1, 9)),
    elements=st.floats(-1000, 1000, width=16),
)


@pytest.mark.parametrize("name", CODECS)
@given(values=rows)
def test_a_codec_writes_what_its_layout_says(name, values):
    codec = CODECS[name]
    arrays = codec.encode(values)
    layout = codec.layout(values.shape[1])
    assert arrays.keys() == layout.keys()
    for key, (dtype, shape) in layout.items():
        assert arrays[key].dtype == dtype and arrays[key].shape == (len(values), *shape)
    decoded = codec.decode(arrays)
    assert decoded.dtype == np.float32 and decoded.shape == values.shape


@given(values=rows)
def test_floats_come_back_as_they_are(values):
    for name in ("float32", "float16"):
        np.testing.assert_array_equal(CODECS[name].decode(CODECS[name].encode(values)), values)


@given(values=rows)
def test_int8_errs_by_at_most_half_a_step(values):
    arrays = CODECS["int8"].encode(values)
    error = np.abs(CODECS["int8"].decode(arrays) - values)
    assert (error <= 0.5001 * arrays["scales"].astype(np.float32)[:, None] + 1e-12).all()
    assert (np.abs(arrays["values"].astype(int)) <= 127).all()
