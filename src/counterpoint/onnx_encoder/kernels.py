"""Choose how the steps of an encoder in 8 bits are computed: by numpy or compiled, with the same result."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from counterpoint.index.paths import Meter, usable
from counterpoint.onnx_encoder import eight_bits, steps

__all__ = ["BY_NUMPY", "Chooser", "Kernels", "agrees", "compiled_kernels"]

WIDEN, MULTIPLY = 1.5, 0.03
"""Nanoseconds that numpy takes for a weight, and for each product with it."""


class Kernels(NamedTuple):
    """The steps that are worth compiling."""

    product: Callable[..., Any]
    attended: Callable[..., Any]
    gelu: Callable[..., Any]
    normalised: Callable[..., Any]


BY_NUMPY = Kernels(eight_bits.product, steps.attended, steps.gelu, steps.normalised)


@final
class Chooser:
    """Chooses for one encoder, which has `weights` numbers in its matrices."""

    def __init__(self, weights: int):
        self._weights, self._meter = weights, Meter()

    def kernels(self, positions: int) -> Kernels:
        """The kernels for a query: compiled, once numpy would have taken longer than loading them."""
        worth = self._meter.is_worth_it(self._weights * (WIDEN + MULTIPLY * positions))
        return (compiled_kernels() if worth else None) or BY_NUMPY


@lru_cache(maxsize=1)
def compiled_kernels() -> Kernels | None:
    """The compiled kernels; None without numba, or if they differ from numpy, as old code may."""
    return usable(_imported)


def _imported() -> Kernels | None:
    from counterpoint.onnx_encoder import compiled_steps as compiled
    from counterpoint.onnx_encoder.compiled_product import product

    found = Kernels(product, compiled.attended, compiled.gelu, compiled.normalised)
    if agrees(found):
        return found
    logging.getLogger(__name__).warning(
        "the compiled encoder differs from numpy and is not used; delete numba's cache or reinstall "
        "counterpoint"
    )
    return None


def agrees(kernels: Kernels) -> bool:
    """Whether the kernels give numpy's numbers, bit for bit."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    scale = np.float32(0.3)
    matrix, rows, bias = eight_bits.rounded(normal(37, 131)), normal(21, 131), normal(37)
    cases = {
        "product": [((rows[:count], matrix, bias), {}) for count in (5, 6, 14, 8)],
        "attended": [((normal(19, 3 * 2 * 18), normal(19)), {"heads": 2, "scale": scale})],
        "gelu": [((normal(9, 33),), {})],
        "normalised": [((normal(9, 33), normal(33), normal(33), np.float32(1e-12)), {})],
    }
    return all(
        getattr(kernels, name)(*given, **said).tobytes() == getattr(BY_NUMPY, name)(*given, **said).tobytes()
        for name, every in cases.items()
        for given, said in every
    )
