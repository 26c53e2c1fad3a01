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

CodecName = Literal["float32", "float16", "int8", "int4"]


class Codec(ABC):
    """Rows of float32 to named arrays with one row each, and back."""

    @abstractmethod
    def layout(self, dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
        """The arrays that are stored: name to (dtype, shape of one row)."""

    @abstractmethod
    def encode(self, values: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
        """The arrays of `layout` for these rows."""

    @abstractmethod
    def decode(self, arrays: Mapping[str, np.ndarray], dim: int) -> Float[np.ndarray, "n d"]:
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

    def decode(self, arrays: Mapping[str, np.ndarray], dim: int) -> Float[np.ndarray, "n d"]:
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
        integers, scales = _quantised(values, 127)
        return {"values": integers, "scales": scales}

    def decode(self, arrays: Mapping[str, np.ndarray], dim: int) -> Float[np.ndarray, "n d"]:
        """Integers times scales."""
        return arrays["values"] * arrays["scales"].astype(np.float32)[:, None]


@final
class Int4(Codec):
    """As `Int8` with integers in [-7, 7], two components a byte, the even one in the low half."""

    def layout(self, dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
        """Packed integers and scales."""
        return {"values": (np.uint8, ((dim + 1) // 2,)), "scales": (np.float16, ())}

    def encode(self, values: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
        """Quantise and pack; an odd last component shares its byte with a zero."""
        integers, scales = _quantised(values, 7)
        halves = np.pad(integers + 8, ((0, 0), (0, values.shape[1] % 2)), constant_values=8).astype(np.uint8)
        return {"values": halves[:, 0::2] | halves[:, 1::2] << 4, "scales": scales}

    def decode(self, arrays: Mapping[str, np.ndarray], dim: int) -> Float[np.ndarray, "n d"]:
        """Unpack, then integers times scales."""
        packed = np.asarray(arrays["values"])
        integers = np.empty((len(packed), 2 * packed.shape[1]), np.float32)
        np.subtract(packed & 15, np.float32(8), out=integers[:, 0::2])
        np.subtract(packed >> 4, np.float32(8), out=integers[:, 1::2])
        integers *= arrays["scales"].astype(np.float32)[:, None]
        return integers[:, :dim]


def _quantised(values: Float[np.ndarray, "n d"], most: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers in [-most, most] and their float16 scales."""
    exact = np.abs(values).max(axis=1, initial=0.0) / most
    scales = exact.astype(np.float16)
    scales = np.where(scales < exact, np.nextafter(scales, np.float16(np.inf)), scales)
    steps = np.where(scales > 0, scales, 1).astype(np.float32)
    return np.rint(values / steps[:, None]).astype(np.int8), scales


CODECS: Mapping[CodecName, Codec] = MappingProxyType(
    {"float32": Plain(np.float32), "float16": Plain(np.float16), "int8": Int8(), "int4": Int4()}
)
