"""A random rotation for any number of components, the same on every machine.

After it the components of any vector have nearly the same distribution, as codes of a few bits need (Gao and
Long 2024, RaBitQ, section 3.1). It consists of random signs and Hadamard transforms of the first and of the
last 2^k components. So it depends on no library's random numbers or factorisation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Shaped

__all__ = ["STEP", "Turn", "mixed", "rotated", "rotation"]

STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64 (Steele, Lea and Flood 2014), as are those below
MIXING = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))
ROUNDS = 2  # of four steps each; one round would mix the middle components with the others only once


@lru_cache(maxsize=8)
def rotation(dim: int) -> Float[np.ndarray, "d d"]:
    """The rotation as an orthogonal float32 matrix, for products with many rows."""
    found = rotated(np.eye(dim)).astype(np.float32)
    found.setflags(write=False)
    return found


Turn = Callable[[Float[np.ndarray, "d n"], Float[np.ndarray, "s d"]], None]
"""A compiled kernel, see `counterpoint.index.compiled.turn`."""


def rotated(rows: Float[np.ndarray, "n d"], turn: Turn | None = None) -> Float[np.ndarray, "n d"]:
    """Rotate rows in float64: bit-identical for any number of rows at a time.

    A matrix product would add in an order that depends on shapes. `turn` is a kernel that does the same.
    """
    dim, found = rows.shape[1], rows.astype(np.float64)
    width, steps = 1 << (dim.bit_length() - 1), _signs(2 * ROUNDS * dim).reshape(2 * ROUNDS, dim)
    if turn is not None:
        columns = np.ascontiguousarray(found.T)
        turn(columns, steps)
        return np.ascontiguousarray(columns.T)
    for step, signs in enumerate(steps):
        where = slice(0, width) if step % 2 == 0 else slice(dim - width, dim)
        found *= signs
        found[:, where] = _hadamard(found[:, where])
    return found


def _hadamard(rows: Float[np.ndarray, "n w"]) -> Float[np.ndarray, "n w"]:
    """The normalised Walsh-Hadamard transform of every row, whose length is a power of two."""
    width, half, found = rows.shape[1], 1, np.ascontiguousarray(rows)
    while half < width:
        pairs = found.reshape(len(found), width // (2 * half), 2, half)
        left, right = pairs[:, :, 0], pairs[:, :, 1]
        difference = left - right
        left += right
        right[...] = difference
        half *= 2
    return found / np.sqrt(width)


@lru_cache(maxsize=8)
def _signs(count: int) -> Float[np.ndarray, " c"]:
    """Pseudo-random signs by SplitMix64, which is specified exactly."""
    drawn = mixed(np.arange(1, count + 1, dtype=np.uint64) * STEP)
    return np.where(drawn >> np.uint64(63), -1.0, 1.0)


def mixed(values: Shaped[np.ndarray, "*n"]) -> Shaped[np.ndarray, "*n"]:
    """The finaliser of SplitMix64: every input bit flips each output bit half of the time."""
    for shift, factor in MIXING:
        values = (values ^ (values >> np.uint64(shift))) * factor
    return values ^ (values >> np.uint64(31))
