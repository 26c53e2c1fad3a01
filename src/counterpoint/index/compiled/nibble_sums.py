"""What four neighbouring bits of a row add to the sum of a query's integers, for each of their 16 values."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["CHUNK", "nibble_sums"]

CHUNK = 16  # bytes of a row that are looked up together


@njit(nogil=True)
def nibble_sums(query, width):
    """Sums of a query of integers of at most 31, (chunks, `CHUNK`, 2, 16): by byte, by half of it, by value.

    The last chunk of a row of `width` bytes may overlap the one before. There its sums are 0.
    """
    found = np.zeros((-(-width // CHUNK), CHUNK, 2, 16), np.int8)
    for chunk in range(len(found)):
        start = min(CHUNK * chunk, width - CHUNK)
        for place in range(CHUNK * chunk - start, CHUNK):
            for half in range(2):
                first = 8 * (start + place) + 4 * half
                for value in range(16):
                    for bit in range(4):
                        if value >> bit & 1:
                            found[chunk, place, half, value] += query[first + bit]
    return found
