"""Tables of rotated vectors in 4 bits: means, centres and centroids, from which rows are differences."""

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
"""`values` and `scales`, one row per vector."""


def layout(dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
    """The stored arrays, as in `Codec.layout`."""
    return CODEC.layout(dim)


def coded(rotated: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
    """The arrays for rotated vectors."""
    return CODEC.packed(rotated)


def decoded(arrays: Arrays, dim: int) -> Float[np.ndarray, "n d"]:
    """The vectors, still rotated."""
    return CODEC.integers(arrays["values"], dim) * arrays["scales"].astype(np.float32)[:, None]


def products(query: Rounded, arrays: Arrays) -> Float[np.ndarray, "m n"]:
    """Inner products with rounded query rows, without the rows' scales."""
    integers = CODEC.integers(arrays["values"], query.rows.shape[1])
    return query.times(integers, CODEC.top) * arrays["scales"].astype(np.float32)


def compiled_products(asked: Any, arrays: Arrays, kernels: Kernels) -> Float[np.ndarray, "n lanes"]:
    """The same by a compiled kernel, transposed; `asked` is the query in the kernels' form."""
    factors = arrays["scales"].view(np.uint16)
    return kernels.products(asked, arrays["values"], factors, CODEC.bits, kernels.halves)
