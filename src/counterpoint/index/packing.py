"""Lists of small numbers in few bits, packed and unpacked by numpy alone.

A packed list is

    one byte     the place of its width in `WIDTHS`
    its numbers  of that many bits each, the first in the lowest bits; the last byte is filled with zeros
    exceptions   4 bytes each, little-endian, in order

A number that does not fit has all bits set, and its value is among the exceptions. So the largest number that
fits in `w` bits is 2^w - 2. Width 0 is for lists of zeros; width 32 has no exceptions. Every list has the
width that makes it shortest.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, Integer, UInt, UInt8

__all__ = ["LARGEST_PACKED", "WIDTHS", "pack", "place", "taken", "unpack", "unpack_all"]

Bytes = UInt8[np.ndarray, " b"]
PerList = Int[np.ndarray, " n"]
"""A number for each of some lists."""
WIDTHS = (0, 1, 2, 4, 8, 16, 32)
"""They divide 8 or are whole bytes, so a list is unpacked in a few passes over whole arrays."""
EXCEPTION = np.dtype("<u4")
LARGEST_PACKED = 1 + 4
"""Maximum number of bytes of a list per number; a list has at least one number."""


def pack(values: Integer[np.ndarray, " v"], counts: PerList) -> tuple[Bytes, PerList]:
    """Pack many lists at once.

    Args:
        values: the numbers of all lists, one list after the other; from 0 to 2^32 - 1.
        counts: how many numbers each list has, at least one.

    Returns:
        The bytes of all lists, one after the other, and the number of bytes of each list.
    """
    codes, exceptions = _narrowest(values, counts)
    bodies = -(-counts * np.array(WIDTHS)[codes] // 8)
    sizes = 1 + bodies + EXCEPTION.itemsize * exceptions
    starts = np.cumsum(sizes) - sizes
    packed = np.zeros(int(sizes.sum()), np.uint8)
    packed[starts] = codes
    code_of = np.repeat(codes, counts)
    for code in np.unique(codes).tolist():
        own = np.flatnonzero(codes == code)
        body, tail = _packed(values[code_of == code], counts[own], WIDTHS[code])
        place(packed, starts[own] + 1, bodies[own], body)
        place(packed, starts[own] + 1 + bodies[own], EXCEPTION.itemsize * exceptions[own], tail)
    return packed, sizes


def place(into: Bytes, starts: PerList, sizes: PerList, pieces: UInt8[np.ndarray, " p"]) -> None:
    """Copy consecutive pieces, each to its own start."""
    shifts = starts - (np.cumsum(sizes) - sizes)
    into[np.arange(len(pieces)) + np.repeat(shifts, sizes)] = pieces


def taken(packed: Bytes, starts: PerList, sizes: PerList) -> UInt8[np.ndarray, " p"]:
    """The bytes of pieces at their own starts, made consecutive; the inverse of `place`."""
    return packed[np.arange(int(sizes.sum())) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)]


def unpack_all(packed: Bytes, starts: PerList, counts: PerList) -> tuple[Int[np.ndarray, " v"], PerList]:
    """`unpack` many lists at once.

    Args:
        packed: bytes that contain them.
        starts: where each begins.
        counts: how many numbers each has, at least one.

    Returns:
        The numbers of all lists, one list after the other, and the number of bytes of each list.

    Raises:
        ValueError: there is no packed list at one of the starts.
    """
    if (starts >= len(packed)).any() or (packed[starts] >= len(WIDTHS)).any():
        raise ValueError("no packed list begins here")
    codes = packed[starts]
    bodies = -(-counts * np.array(WIDTHS)[codes] // 8)
    if (starts + 1 + bodies > len(packed)).any():
        raise ValueError("a packed list is cut off")
    values, exceptions = np.zeros(int(counts.sum()), np.int64), np.zeros(len(counts), np.int64)
    code_of = np.repeat(codes, counts)
    for code in np.unique(codes).tolist():
        own, mine = np.flatnonzero(codes == code), np.flatnonzero(code_of == code)
        if bits := WIDTHS[code]:
            body = taken(packed, starts[own] + 1, bodies[own])
            values[mine] = small = _numbers(body, bodies[own], counts[own], bits)
            if bits < 32:
                large = small == _top(bits)
                exceptions[own] = np.add.reduceat(large, np.cumsum(counts[own]) - counts[own], dtype=np.int64)
                ends, tails = starts[own] + 1 + bodies[own], EXCEPTION.itemsize * exceptions[own]
                if (ends + tails > len(packed)).any():
                    raise ValueError("the exceptions of a packed list are cut off")
                values[mine[large]] = taken(packed, ends, tails).view(EXCEPTION)
    return values, 1 + bodies + EXCEPTION.itemsize * exceptions


def unpack(packed: Bytes, count: int) -> tuple[Int[np.ndarray, " count"], int]:
    """The numbers of the list at the first byte, and its number of bytes.

    Raises:
        ValueError: the bytes do not begin with a packed list of `count` numbers.
    """
    if not len(packed) or packed[0] >= len(WIDTHS):
        raise ValueError("no packed list begins here")
    bits = WIDTHS[packed[0]]
    end = 1 - (-count * bits // 8)
    body = packed[1:end]
    if len(packed) < end:
        raise ValueError("a packed list is cut off")
    if bits == 0:
        return np.zeros(count, np.int64), end
    small = body.view(f"<u{bits // 8}") if bits >= 8 else _parts(body, bits)[:count]
    values = small.astype(np.int64)
    if bits == 32:
        return values, end
    large = np.flatnonzero(small == _top(bits))
    tail = packed[end : end + EXCEPTION.itemsize * len(large)]
    if len(tail) < EXCEPTION.itemsize * len(large):
        raise ValueError("the exceptions of a packed list are cut off")
    values[large] = tail.view(EXCEPTION)
    return values, end + len(tail)


def _top(bits: int) -> int:
    """The code of an exception."""
    return (1 << bits) - 1


def _narrowest(values: Integer[np.ndarray, " v"], counts: PerList) -> tuple[PerList, PerList]:
    """The width that makes each list shortest (the smaller on ties), and its number of exceptions."""
    firsts = np.cumsum(counts) - counts
    exceptions = np.zeros((len(WIDTHS), len(counts)), np.int64)
    for code, bits in enumerate(WIDTHS[:-1]):
        exceptions[code] = np.add.reduceat(values >= max(_top(bits), 1), firsts, dtype=np.int64)
    sizes = -(-counts * np.array(WIDTHS)[:, None] // 8) + EXCEPTION.itemsize * exceptions
    sizes[0, exceptions[0] > 0] = np.iinfo(np.int64).max
    codes = sizes.argmin(axis=0)
    return codes, exceptions[codes, np.arange(len(counts))]


def _packed(
    values: Integer[np.ndarray, " v"], counts: PerList, bits: int
) -> tuple[Bytes, UInt8[np.ndarray, " t"]]:
    none = np.zeros(0, np.uint8)
    if bits == 0:
        return none, none
    if bits == 32:
        return values.astype(EXCEPTION).view(np.uint8), none
    large = values >= _top(bits)
    tail = values[large].astype(EXCEPTION).view(np.uint8)
    small = np.where(large, _top(bits), values)
    if bits >= 8:
        return small.astype(f"<u{bits // 8}").view(np.uint8), tail
    filled = -(-counts * bits // 8) * (8 // bits)  # every list ends with a whole byte
    room = np.zeros(int(filled.sum()), np.uint8)
    place(room, np.cumsum(filled) - filled, counts, small.astype(np.uint8))
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(room.reshape(-1, 8 // bits) << shifts, axis=1), tail


def _numbers(body: Bytes, bodies: PerList, counts: PerList, bits: int) -> UInt[np.ndarray, " v"]:
    """The codes of lists of one width."""
    if bits >= 8:
        return body.view(f"<u{bits // 8}")
    room = bodies * (8 // bits)  # the last byte of a list may not be full
    return taken(_parts(body, bits), np.cumsum(room) - room, counts)


def _parts(body: Bytes, bits: int) -> UInt8[np.ndarray, " p"]:
    """Every `bits` bits of some bytes, the lowest first."""
    parts = np.empty((len(body), 8 // bits), np.uint8)
    for at in range(8 // bits):
        parts[:, at] = body >> (at * bits) & _top(bits)
    return parts.reshape(-1)
