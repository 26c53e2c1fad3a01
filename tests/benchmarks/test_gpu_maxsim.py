"""MaxSim on a GPU, tried on the CPU, equals the library's own."""

import numpy as np
import pytest
from benchmarks.papers import gpu_maxsim

from counterpoint.index.kernels import maxsim_table
from counterpoint.types import Ragged


def ragged(rng, lengths, dim=8):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Ragged(rng.standard_normal((offsets[-1], dim)).astype(np.float32), offsets)


@pytest.mark.parametrize("lengths", [(3, 0, 1, 7), (1,), (0, 0), ()])
@pytest.mark.parametrize("products", [1, 40, 1 << 20])
def test_the_table_is_that_of_the_library(monkeypatch, lengths, products):
    monkeypatch.setattr(gpu_maxsim, "PRODUCTS", products)
    rng = np.random.default_rng(0)
    queries, documents = ragged(rng, (4, 0, 2)), ragged(rng, lengths)
    found = gpu_maxsim.gpu_table(queries, documents, device="cpu")
    assert found.shape == (3, len(lengths))
    assert found == pytest.approx(maxsim_table(queries, documents), abs=1e-5)
