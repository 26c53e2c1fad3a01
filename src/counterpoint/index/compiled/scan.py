"""Inner products of queries with every row of a table of 8-bit integers."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["scan_int8"]


@njit(nogil=True, cache=True)
def scan_int8(queries, scales, values, factors):
    """Exact products of integers, times the factor of the row and then the scale of the query.

    Args:
        queries: (q, d) int8.
        scales: (q,) float32.
        values: (n, d) int8.
        factors: (n,) float32.

    Returns:
        (q, n) float32.
    """
    found = np.empty((len(queries), len(values)), np.float32)
    for at in range(len(values)):
        row, factor = values[at], factors[at]
        for q in range(len(queries)):
            query, total = queries[q], np.int32(0)
            for i in range(len(row)):
                total += np.int32(query[i]) * np.int32(row[i])
            found[q, at] = np.float32(total) * factor * scales[q]
    return found
