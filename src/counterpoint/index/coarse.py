"""Rotated vectors in codes of 4 bits, kept as tables: what rows of few bits are differences from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from jaxtyping import Float

from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.rounded import Rounded

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels

__all__ = ["coded", "compiled_products", "decoded", "layout", "products"]

CODEC = cast(Bits, CODECS["4-bit"])
Arrays = Mapping[str, np.ndarray]
"""`values` and `scales`, a row a vector."""


def layout(dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
    """What is stored, as `Codec.layout` gives it."""
    return CODEC.layout(dim)


def coded(rotated: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
    """The arrays for rotated vectors."""
    return CODEC.packed(rotated)


def decoded(arrays: Arrays, dim: int) -> Float[np.ndarray, "n d"]:
    """The vectors, still rotated."""
    return CODEC.integers(arrays["values"], dim) * arrays["scales"].astype(np.float32)[:, None]


def products(query: Rounded, arrays: Arrays) -> Float[np.ndarray, "m n"]:
    """Inner products with rounded rows of a query, without these rows' scales."""
    integers = CODEC.integers(arrays["values"], query.rows.shape[1])
    return query.times(integers, CODEC.top) * arrays["scales"].astype(np.float32)


def compiled_products(asked: Any, arrays: Arrays, kernels: Kernels) -> Float[np.ndarray, "n lanes"]:
    """The same with a query as kernels take it, transposed, by a compiled kernel."""
    factors = arrays["scales"].view(np.uint16)
    return kernels.products(asked, arrays["values"], factors, CODEC.bits, kernels.halves)
