"""Upper bounds of inner products with vectors of one bit per component.

`sketched` has a compiled twin, `counterpoint.index.compiled.sketched`.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from jaxtyping import Float, Float16, UInt8

from counterpoint.index.codec import CODECS, Bits

__all__ = ["CODEC", "ERRORS", "TOP", "sketched"]

CODEC = cast(Bits, CODECS["1-bit"])
ERRORS = 1.14
"""The error bound of an estimate, relative to the row's scale times the query's length.

With many components, the standard deviation of an estimate is 0.6 of that (√(1 − 2/π)). So this is 1.9
standard deviations, as in the paper (section 3.2.2).
"""

TOP = 31
"""The largest integer of a query, so that four of them add up to a byte.

Their rounding adds .1 % to the standard deviation of an estimate.
"""


def sketched(
    query: tuple[Float[np.ndarray, " d"], np.float32, np.float32],
    signs: UInt8[np.ndarray, "n b"],
    factors: Float16[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """Estimates of inner products, each plus its error bound.

    Args:
        query: integers of at most `TOP`, their scale, and the error bound of a row with factor 1.
        signs: packed, a row of the sketch each.
        factors: of the rows.
    """
    (integers, scale, error), wide = query, factors.astype(np.float32)
    # A sum of a query's integers, added where a row's bit is set and subtracted where not, is exact.
    return CODEC.integers(signs, len(integers)) @ integers * (wide * scale) + wide * error
