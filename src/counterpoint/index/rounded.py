"""Query rows rounded to 8 bits, whose products with other integers are exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

__all__ = ["Rounded", "rounded"]

EXACT = 2**24  # up to here every integer is a float32


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


def rounded(rows: Float[np.ndarray, "m d"]) -> Rounded:
    """Round rows to integers of at most 127, with one scale per row; a row of zeros stays zero."""
    scales = (np.abs(rows).max(axis=1, initial=0.0) / 127).astype(np.float32)
    steps = np.where(scales > 0, scales, np.float32(1))
    return Rounded(np.rint(rows / steps[:, None]).clip(-127, 127).astype(np.float32), scales)
