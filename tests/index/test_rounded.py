import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from counterpoint.index.rounded import rounded

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
