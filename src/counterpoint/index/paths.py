"""Choose how vectors are multiplied: with numpy or with compiled kernels. Both give the same scores.

Compiled kernels are many times as fast and take .7 seconds to load, too much for a single query from the
shell. So a store starts with numpy, and switches before it has spent more than that. The first compilation
takes nine seconds; the build of a large index triggers it (`compile_all`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast, final

from counterpoint.index.kernel_check import agrees
from counterpoint.index.kernel_names import Kernels

__all__ = ["Kernels", "Meter", "compile_all", "described", "multiplying", "usable"]

WORTH = 7 * 10**8  # nanoseconds that loading takes
Loaded = TypeVar("Loaded")

UNPACK, MULTIPLY = 2, 0.1  # nanoseconds of numpy for a stored component, and for each product with it


def multiplying(components: int, rows: int) -> float:
    """Nanoseconds that numpy takes to unpack stored components, and to multiply each with `rows` others."""
    return components * (UNPACK + MULTIPLY * rows)


@final
class Meter:
    """Counts the work of one store."""

    def __init__(self) -> None:
        self._done = 0.0

    def kernels(self, nanoseconds: float) -> Kernels | None:
        """The compiled kernels; None while numpy is faster overall.

        Args:
            nanoseconds: what numpy would take now.
        """
        return _loaded() if self.is_worth_it(nanoseconds) else None

    def is_worth_it(self, nanoseconds: float) -> bool:
        """Whether numpy takes longer overall than loading compiled kernels, which may be loaded already."""
        self._done += nanoseconds
        return self._done >= WORTH or "counterpoint.index.compiled.maxsim" in sys.modules


def usable(load: Callable[[], Loaded | None]) -> Loaded | None:
    """What `load` imports from compiled modules; None where numba cannot compile or keep it."""
    try:
        from numba import config
        from numba.core.errors import NumbaError
    except ImportError:  # numba does not support every version of Python yet
        return None
    if vars(config)["DISABLE_JIT"]:
        return None
    try:
        return load()
    except RuntimeError as error:  # numba can write its cache nowhere
        logging.getLogger(__name__).warning(
            "the compiled kernels are not used: %s; set NUMBA_CACHE_DIR to a folder that can be written",
            error,
        )
    except NumbaError as error:  # a version of numba that we do not know
        logging.getLogger(__name__).warning("the compiled kernels are not used: %s", error)
    return None


@lru_cache(maxsize=1)
def _loaded() -> Kernels | None:
    return usable(_imported)


def _imported() -> Kernels | None:
    from counterpoint.index.compiled.best import highest, reaching
    from counterpoint.index.compiled.dots import asked_of
    from counterpoint.index.compiled.inverted import add_postings, add_sorted, matched
    from counterpoint.index.compiled.maxsim import HALVES, maxsim_bits, products_of, products_of_words
    from counterpoint.index.compiled.postings import add_scores, scored
    from counterpoint.index.compiled.proposing import gathered, interactions, levels_of, probed
    from counterpoint.index.compiled.scan import scan_int8, scan_some
    from counterpoint.index.compiled.sketched import sketched_rows
    from counterpoint.index.compiled.turn import turn

    lists = probed, levels_of, gathered, interactions
    pooled = scan_int8, scan_some, turn, sketched_rows
    by_id = add_postings, add_sorted, matched
    several = asked_of, maxsim_bits, products_of, products_of_words
    selecting = scored, add_scores, highest, reaching
    found = Kernels(*several, *pooled, *lists, *by_id, *selecting, HALVES)
    if agrees(found):
        return found
    logging.getLogger(__name__).warning(
        "the compiled kernels give other scores than numpy and are not used; delete numba's cache "
        "(%s) or reinstall counterpoint",
        cast(Any, found.products).stats.cache_path,
    )
    return None


def compile_all() -> None:
    """Compile and cache the kernels, if numba is installed."""
    _loaded()


def described() -> dict[str, str]:
    """The kernels that compute integer scores on this machine, for `info --hardware`."""
    if _loaded() is None:
        return {"kernel": "numpy"}
    from counterpoint.index.compiled.machine import AVX2, VBMI, VNNI

    used = " and ".join(name for name, there in (("VNNI", VNNI), ("VBMI", VBMI)) if there)
    if used:
        return {"kernel": f"compiled, AVX-512 {used}"}
    return {"kernel": "compiled, AVX2" if AVX2 else "compiled, portable"}
