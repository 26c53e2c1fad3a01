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
