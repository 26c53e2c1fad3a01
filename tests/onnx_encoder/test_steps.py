"""Steps of BERT in numpy, next to torch's."""

import numpy as np
import pytest
from scipy.special import erf

from counterpoint.onnx_encoder.steps import attended, gelu, normalised

torch = pytest.importorskip("torch")


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_gelu_is_exact_to_a_millionth():
    rows = np.concatenate([np.linspace(-200, 200, 4001), np.linspace(-6, 6, 4001), [0.0, -0.0]])
    rows = rows.astype(np.float32)[None]
    wanted = rows * 0.5 * (1 + erf(rows.astype(np.float64) / np.sqrt(2)))
    assert np.abs(gelu(rows) - wanted).max() < 2e-6 + 1e-7 * 200
    near = np.abs(rows) < 6
    assert np.abs(gelu(rows) - wanted)[near].max() < 2e-6


@pytest.mark.parametrize("size", [1, 7, 16, 100, 384])
def test_layer_normalisation_is_torch_s(size):
    rows, weight, bias = 3 * normal(1, 5, size) + 2, normal(2, size), normal(3, size)
    wanted = torch.nn.functional.layer_norm(
        *map(torch.from_numpy, (rows,)), (size,), *map(torch.from_numpy, (weight, bias)), 1e-5
    )
    np.testing.assert_allclose(normalised(rows, weight, bias, 1e-5), wanted.numpy(), atol=2e-5)


@pytest.mark.parametrize(("positions", "heads", "size"), [(1, 1, 1), (7, 2, 5), (21, 12, 32), (40, 3, 16)])
def test_attention_is_torch_s(positions, heads, size):
    made, bias = normal(1, positions, 3 * heads * size), np.zeros(positions, np.float32)
    bias[1 : positions // 2] = np.finfo(np.float32).min  # positions that nobody attends to
    sides = torch.from_numpy(made).reshape(positions, 3, heads, size).permute(1, 2, 0, 3)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *sides, attn_mask=torch.from_numpy(bias), scale=0.3
    )
    found = attended(made, bias, heads=heads, scale=np.float32(0.3))
    np.testing.assert_allclose(found, wanted.permute(1, 0, 2).reshape(positions, -1).numpy(), atol=2e-5)


def test_no_positions():
    assert attended(normal(1, 0, 24), normal(1, 0), heads=2, scale=np.float32(1)).shape == (0, 8)
    assert (
        gelu(normal(1, 0, 24)).shape == normalised(normal(1, 0, 24), *normal(1, 2, 24), 1e-5).shape == (0, 24)
    )
