"""Storage as ColBERTer's table 5 prints it."""

import pytest

from counterpoint.errors import ConfigError
from counterpoint.measure import stored_bytes

PASSAGES = 8_841_823  # of MS MARCO


@pytest.mark.parametrize(
    ("printed", "vectors", "dim", "exact"),
    [(3.3, 21.6, 1, True), (5.8, 21.6, 8, True), (9.9, 30.9, 16, False), (18.8, 30.9, 32, False)],
)
def test_table_5_in_gib(printed, vectors, dim, exact):
    """The vectors a passage are those that the paper and its README name; printed figures are rounded."""
    assert stored_bytes(PASSAGES, vectors, dim, exact=exact) / 2**30 == pytest.approx(printed, rel=0.04)


def test_by_hand():
    assert stored_bytes(10, 3, 8, exact=True) == 10 * (256 + 3 * (16 + 4))
    assert stored_bytes(10, 3, 8, pooled=0) == 10 * 3 * 16
    with pytest.raises(ConfigError, match="at least 0"):
        stored_bytes(-1, 3, 8)
