"""Codecs: how vectors become bytes. Each codec is a pair of pure functions and declares what it stores.

To add a codec, write a class and add it to `CODECS` and its name to `CodecName`; the contract suites find it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal, final

import numpy as np
from jaxtyping import Float, Shaped, UInt

from counterpoint.index.rotation import Turn, rotated, rotation

__all__ = ["CODECS", "Bits", "Codec", "CodecChoice", "CodecName", "Integral", "Rounded", "rounded"]

CodecName = Literal["1-bit", "2-bit", "4-bit", "int4", "int8", "float16", "float32"]
CodecChoice = Literal["auto", CodecName]
"""A codec, or `auto` for the smallest that keeps the ranking."""

EXACT = 2**24  # up to here every integer is a float32
MANY = 1024  # components, next to which rounding up to whole bytes does not count


class Codec(ABC):
    """Converts float32 rows to named arrays with one row each, and back."""

    @abstractmethod
    def layout(self, dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
        """The stored arrays: name to (dtype, shape of one row).

        An array is a file `<set>.<name>.npy`, so a name cannot be that of another file of a set, such as
        `ids`. `counterpoint.testing.check_codec` refuses these.
        """

    @abstractmethod
    def encode(self, values: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
        """The arrays of `layout` for these rows."""

    @abstractmethod
    def decode(self, arrays: Mapping[str, np.ndarray], dim: int) -> Float[np.ndarray, "n d"]:
        """Rows as float32, approximately those that were encoded."""

    @property
    def packs(self) -> bool:
        """Whether a component takes less than a byte, without what a row has once, such as a scale."""
        return self._bytes(2 * MANY) - self._bytes(MANY) < MANY

    def _bytes(self, dim: int) -> int:
        """Of one row."""
        return sum(np.dtype(kind).itemsize * math.prod(shape) for kind, shape in self.layout(dim).values())


@final
class Plain(Codec):
    """Uncompressed floating point."""

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


@dataclass(frozen=True)
class Rounded:
    """Query rows: `scales` times integers.

    Attributes:
        rows: integers in [-127, 127].
        scales: of each row.
    """

    rows: Float[np.ndarray, "m d"]
    scales: Float[np.ndarray, " m"]

    def times(self, other: Float[np.ndarray, "n d"], most: int) -> Float[np.ndarray, "m n"]:
        """Exact inner products of the integers with other integers of at most `most`, as float32.

        BLAS may add in any order. As long as every sum is an exact float, the order does not matter.
        """
        if 127 * most * self.rows.shape[1] < EXACT:
            return self.rows @ other.T
        return (self.rows.astype(np.float64) @ other.T.astype(np.float64)).astype(np.float32)


def rounded(rows: Float[np.ndarray, "m d"], top: int = 127) -> Rounded:
    """Round rows to integers of at most `top`, with one scale per row; a row of zeros stays zero."""
    scales = (np.abs(rows).max(axis=1, initial=0.0) / top).astype(np.float32)
    steps = np.where(scales > 0, scales, np.float32(1))
    return Rounded(np.rint(rows / steps[:, None]).clip(-top, top).astype(np.float32), scales)


class Integral(Codec):
    """Rows as small integers times one scale per row, optionally after a rotation.

    Queries are rounded to 8 bits after the same rotation. Products of integers are exact, so every way to
    compute them gives bit-identical scores. Compiled kernels read the arrays: `values`, int8 for 8 bits, else
    uint8 in which a code c of b bits means the integer 2c + 1 − 2^b, the first component in the lowest bits;
    and `scales`, float16, one per row.

    Attributes:
        bits: per component: 1, 2, 4 or 8.
        top: the largest integer.
    """

    bits: int
    top: int

    @abstractmethod
    def asked(self, query: Float[np.ndarray, "m d"], turn: Turn | None = None) -> Rounded:
        """A query's rows, prepared for products with `integers`; `turn` is passed to `rotated`."""

    @abstractmethod
    def integers(self, values: Shaped[np.ndarray, "n b"], dim: int) -> Float[np.ndarray, "n d"]:
        """The integers of stored rows."""

    @cached_property
    def table(self) -> UInt[np.ndarray, " 256"]:
        """For each byte value, the codes (from 0 up) that it packs, one byte each, joined into one number."""
        places = np.arange(8 // self.bits) * self.bits
        codes = ((np.arange(256)[:, None] >> places) & (2**self.bits - 1)).astype(np.uint8)
        return codes.reshape(-1).view(f"<u{8 // self.bits}")


@final
class Int8(Integral):
    """Symmetric 8-bit integers with one float16 scale per row: value = scale · integer.

    The scale is max|x| / 127, rounded up to a float16 so that no integer leaves [-127, 127]. The error of a
    component is at most scale / 2.
    """

    bits, top = 8, 127

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

    def asked(self, query: Float[np.ndarray, "m d"], turn: Turn | None = None) -> Rounded:
        """Round the rows to 8 bits."""
        return rounded(query)

    def integers(self, values: Shaped[np.ndarray, "n b"], dim: int) -> Float[np.ndarray, "n d"]:
        """The stored integers."""
        return values.astype(np.float32)


@final
class Int4(Codec):
    """Like `Int8`, but integers in [-7, 7], two components per byte, the even one in the low half."""

    def layout(self, dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
        """Packed integers and scales."""
        return {"values": (np.uint8, ((dim + 1) // 2,)), "scales": (np.float16, ())}

    def encode(self, values: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
        """Quantise and pack; with an odd `dim`, the last component shares its byte with a zero."""
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
    _keep_exact(values, scales)
    steps = np.where(scales > 0, scales, 1).astype(np.float32)
    integers = np.rint(values / steps[:, None]).astype(np.int8)
    nothing = ~integers.any(axis=1) & np.isfinite(scales)  # all rounded to 0; callers refuse infinite scales
    return integers, np.where(nothing, np.float16(0), scales)


def _keep_exact(values: Float[np.ndarray, "n d"], scales: Shaped[np.ndarray, " n"]) -> None:
    """Keep the scales of rows that were decoded before, so that they are encoded to the same bytes.

    A normal scale is found again: its row has an integer ±most. Subnormal float16 scales are multiples of
    2^-24, and rounding up may leave all integers below most. The smallest multiple that gives exact integers
    is then at most two steps larger.
    """
    tiny = np.flatnonzero((scales > 0) & (scales < np.finfo(np.float16).tiny))
    units = values[tiny].astype(np.float64) * 2.0**24
    steps = scales[tiny].astype(np.float64) * 2.0**24
    for more in (2, 1, 0):
        exact = (units % (steps + more)[:, None] == 0).all(axis=1)
        scales[tiny[exact]] = ((steps + more)[exact] / 2.0**24).astype(np.float16)


@final
class Bits(Integral):
    """A few bits per component after a random rotation, and one float16 factor per row (RaBitQ).

    A row x is rotated to y and stored as odd integers c in [-(2^b − 1), 2^b − 1] and a factor |y|² / ⟨y, c⟩.
    Of the integer vectors tried, c has the largest cosine with y. So ⟨x, x̂⟩ = |x|², and in expectation
    over rotations ⟨q, x̂⟩ = ⟨q, x⟩ for every q (Gao and Long 2024, theorem 3.2; Gao et al. 2025 for b > 1).

    Components are packed in order, the first in the lowest bits of the first byte.
    """

    def __init__(self, bits: int):
        self.bits, self.top = bits, 2**bits - 1

    def bytes_of(self, dim: int) -> int:
        """Number of bytes of one packed row."""
        return -(-dim * self.bits // 8)

    def layout(self, dim: int) -> Mapping[str, tuple[type[np.generic], tuple[int, ...]]]:
        """Packed integers and factors."""
        return {"values": (np.uint8, (self.bytes_of(dim),)), "scales": (np.float16, ())}

    def encode(self, values: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
        """Rotate, round, pack."""
        return self.packed(values.astype(np.float32) @ rotation(values.shape[1]))

    def decode(self, arrays: Mapping[str, np.ndarray], dim: int) -> Float[np.ndarray, "n d"]:
        """Unpack, multiply, rotate back."""
        scales = arrays["scales"].astype(np.float32)[:, None]
        return (self.integers(arrays["values"], dim) * scales) @ rotation(dim).T

    def packed(self, turned: Float[np.ndarray, "n d"]) -> dict[str, np.ndarray]:
        """Encode rows that are already rotated."""
        codes = self._nearest(turned)
        along = (turned * codes).sum(axis=1)
        lengths = (turned * turned).sum(axis=1)
        factors = np.divide(lengths, along, out=np.zeros_like(along), where=along > 0)
        width, each = self.bytes_of(turned.shape[1]), 8 // self.bits
        levels = np.zeros((len(turned), width * each), np.uint8)
        levels[:, : turned.shape[1]] = ((codes + self.top) / 2).astype(np.uint8)
        places = levels.reshape(len(turned), width, each) << (np.arange(each, dtype=np.uint8) * self.bits)
        values = np.bitwise_or.reduce(places, axis=2).astype(np.uint8)
        return {"values": values, "scales": factors.astype(np.float16)}

    def asked(self, query: Float[np.ndarray, "m d"], turn: Turn | None = None) -> Rounded:
        """Rotate the rows, then round them to 8 bits."""
        return rounded(rotated(query, turn).astype(np.float32))

    def integers(self, values: Shaped[np.ndarray, "n b"], dim: int) -> Float[np.ndarray, "n d"]:
        """The odd integers."""
        levels = self.table[values].view(np.uint8)[:, :dim]
        return levels.astype(np.float32) * 2 - self.top

    def _nearest(self, turned: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """For each row, the odd integers with the largest cosine to it, over the step widths of `STEPS`."""
        if self.bits == 1:
            return np.where(turned >= 0, np.float32(1), np.float32(-1))
        spread = np.sqrt((turned * turned).mean(axis=1, keepdims=True)) + np.float32(1e-30)
        best, found = np.full(len(turned), -np.inf, np.float32), np.ones_like(turned)
        for step in STEPS[self.bits]:
            codes = np.clip(np.floor(turned / (spread * step)) * 2 + 1, -self.top, self.top)
            cosine = (turned * codes).sum(axis=1) / np.sqrt((codes * codes).sum(axis=1))
            better = cosine > best
            best[better], found[better] = cosine[better], codes[better]
        return found


STEPS: Mapping[int, tuple[float, ...]] = MappingProxyType(
    {2: (0.8, 0.9, 1.0, 1.1, 1.2), 4: (0.27, 0.3, 0.335, 0.37, 0.41)}
)
"""By number of bits, the step widths tried, relative to the root mean square of a row's components."""

CODECS: Mapping[CodecName, Codec] = MappingProxyType(
    {
        "float32": Plain(np.float32),
        "float16": Plain(np.float16),
        "int8": Int8(),
        "int4": Int4(),
        "4-bit": Bits(4),
        "2-bit": Bits(2),
        "1-bit": Bits(1),
    }
)
