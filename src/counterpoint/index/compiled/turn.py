"""The Walsh-Hadamard transforms of a random rotation."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from counterpoint.index.compiled.machine import given

__all__ = ["turn"]

# Imported code: ca85fa7d. numba compiles anew when this file changes, but not when that does.


@njit(types.void(types.float64[:, ::1], given(types.float64, 2)), nogil=True, cache=True)
def turn(columns, signs):
    """`counterpoint.index.rotation.rotated`, in place: the same sums and differences in the same order.

    Args:
        columns: (d, n), one row per column, so that many are rotated at once.
        signs: (steps, d), 1 or −1.
    """
    dim, count, width = columns.shape[0], columns.shape[1], 1
    while 2 * width <= dim:
        width *= 2
    length = np.sqrt(width)
    for step in range(len(signs)):
        for i in range(dim):
            for n in range(count):
                columns[i, n] *= signs[step, i]
        start, half = (0 if step % 2 == 0 else dim - width), 1
        while half < width:
            for first in range(start, start + width, 2 * half):
                for i in range(first, first + half):
                    for n in range(count):
                        left, right = columns[i, n], columns[i + half, n]
                        columns[i, n], columns[i + half, n] = left + right, left - right
            half *= 2
        for i in range(start, start + width):
            for n in range(count):
                columns[i, n] /= length
