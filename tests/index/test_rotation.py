import hashlib

import numpy as np
import pytest

from counterpoint.index.rotation import rotation


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 8, 31, 128, 376, 384])
def test_it_keeps_lengths_and_angles(dim):
    np.testing.assert_allclose(rotation(dim).T @ rotation(dim), np.eye(dim), atol=2e-6)


def test_it_mixes_all_components():
    """A vector along an axis is spread over all components: no entry is far above 1 / sqrt(d)."""
    for dim in (128, 376):
        assert np.abs(rotation(dim)).max() < 6 / np.sqrt(dim)
        assert (np.abs(rotation(dim)) > 1e-4 / np.sqrt(dim)).mean() > 0.9


def test_it_is_the_same_on_every_machine():
    """Stored codes mean something only as long as these signs stay: a change here is a change of format."""
    signs = np.signbit(rotation(16)).tobytes()
    assert hashlib.sha256(signs).hexdigest()[:16] == "bf2bab6a159435b3"
    assert not rotation(16).flags.writeable
