"""Which way vectors are multiplied: numpy, or a kernel that is compiled. Both give the same scores.

The compiled one is ten times as fast and takes a third of a second to load, which one query from the shell
would never earn back. So a store starts with numpy and changes over once it has done as much work.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float

from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.kernels import Products, maxsim_by
from counterpoint.index.rounded import rounded

__all__ = ["Meter", "described"]

WORTH = 10**9  # products of two numbers: what numpy does in about the time that loading takes


@final
class Meter:
    """Counts the work of one store."""

    def __init__(self) -> None:
        self._done = 0

    def kernel(self, products: int) -> Callable[..., Any] | None:
        """The compiled kernel for work of so many products, or None while numpy is quicker."""
        self._done += products
        if self._done < WORTH and "counterpoint.index.compiled.maxsim" not in sys.modules:
            return None
        return _loaded()


@lru_cache(maxsize=1)
def _loaded() -> Callable[..., Any] | None:
    try:
        from counterpoint.index.compiled.maxsim import maxsim_bits
    except ImportError:  # numba has not arrived at every version of Python
        return None
    if _agrees(maxsim_bits):
        return maxsim_bits
    logging.getLogger(__name__).warning(
        "the compiled kernel gives other scores than numpy and is not used; remove what numba has cached "
        "(%s) or reinstall counterpoint",
        Path(__file__).parent / "compiled" / "__pycache__",
    )
    return None


def _agrees(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel gives numpy's scores, to the last bit, on a small example.

    numba keeps compiled code by the date and the size of a source file, which an installer may set to what
    they were before.
    """
    from counterpoint.index.compiled.dots import asked_of

    rng = np.random.default_rng(0)
    offsets, query = np.array([0, 3, 3, 40]), rounded(rng.normal(size=(18, 37)).astype(np.float32))
    bases, places = rng.normal(size=(18, 5)).astype(np.float32), rng.integers(0, 5, 40)
    for codec in (each for each in CODECS.values() if isinstance(each, Bits)):
        arrays = codec.packed(rng.normal(size=(40, 37)).astype(np.float32))
        factors = arrays["scales"].astype(np.float32)
        found = query.times(codec.integers(arrays["values"], 37), codec.top) * factors + bases[:, places]
        found = found * query.scales[:, None]
        wanted = maxsim_by(partial(_rows_of, found), (np.array([0, 18]), offsets))
        asked, rows = asked_of(query, bases), np.arange(40)
        code = codec.bits, codec.table
        scores = kernel(*asked, arrays["values"], rows, factors, places, offsets, code, False)
        if scores.tobytes() != wanted[0].tobytes():
            return False
    return True


def _rows_of(similarity: Float[np.ndarray, "m n"], stored: slice) -> Products:
    return lambda asked: similarity[asked, stored]


def described() -> dict[str, str]:
    """What computes scores of codes of bits on this machine, for `info --hardware`."""
    if _loaded() is None:
        return {"kernel": "numpy"}
    from counterpoint.index.compiled.dots import VNNI

    return {"kernel": "compiled, AVX-512 VNNI" if VNNI else "compiled, portable"}
