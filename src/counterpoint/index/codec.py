"""How vectors become bytes: each codec is a pair of pure functions and says what it stores.

A new codec is one class here and one entry in `CODECS`; the contract suite then finds it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, final

import numpy as np
from jaxtyping import Float

__all__ = ["CODECS", "Codec", "CodecName"]

CodecName = Literal["float32", "float16", "int8"]


class Codec(ABC):
    """Rows of float32 to named arrays with one row each, and back."""

    @abstractmethod
    def layout(self, dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
        """The arrays that are stored: name to (dtype, shape of one row)."""

    @abstractmethod
    def encode(self, values: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
        """The arrays of `layout` for these rows."""

    @abstractmethod
    def decode(self, arrays: Mapping[str, np.ndarray]) -> Float[np.ndarray, "n d"]:
        """Rows as float32 (approximately what was encoded)."""


@final
class Plain(Codec):
    """Floating point as it is."""

    def __init__(self, dtype: type[np.generic]):
        self.dtype = dtype

    def layout(self, dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
        """One array."""
        return {"values": (self.dtype, (dim,))}

    def encode(self, values: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
        """Cast."""
        return {"values": values.astype(self.dtype)}

    def decode(self, arrays: Mapping[str, np.ndarray]) -> Float[np.ndarray, "n d"]:
        """Cast back."""
        return np.asarray(arrays["values"], dtype=np.float32)


@final
class Int8(Codec):
    """Symmetric 8-bit integers with one float16 scale a row: value = scale · integer.

    The scale is max|x| / 127, rounded up to a float16 so that no integer leaves [-127, 127]; the error of a
    component is at most scale / 2.
    """

    def layout(self, dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
        """Integers and scales."""
        return {"values": (np.int8, (dim,)), "scales": (np.float16, ())}

    def encode(self, values: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
        """Quantise; a row of zeros gets scale 0."""
        exact = np.abs(values).max(axis=1, initial=0.0) / 127
        scales = exact.astype(np.float16)
        scales = np.where(scales < exact, np.nextafter(scales, np.float16(np.inf)), scales)
        steps = np.where(scales > 0, scales, 1).astype(np.float32)
        return {"values": np.rint(values / steps[:, None]).astype(np.int8), "scales": scales}

    def decode(self, arrays: Mapping[str, np.ndarray]) -> Float[np.ndarray, "n d"]:
        """Integers times scales."""
        return arrays["values"].astype(np.float32) * arrays["scales"].astype(np.float32)[:, None]


CODECS: Mapping[CodecName, Codec] = MappingProxyType(
    {"float32": Plain(np.float32), "float16": Plain(np.float16), "int8": Int8()}
)
