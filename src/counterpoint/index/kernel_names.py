"""The compiled kernels by name. `counterpoint.index.paths` loads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["Kernels"]


class Kernels(NamedTuple):
    """The compiled kernels, see `counterpoint.index.compiled`."""

    asked: Callable[..., Any]
    maxsim: Callable[..., Any]
    products: Callable[..., Any]
    products_of_words: Callable[..., Any]
    scan: Callable[..., Any]
    scan_some: Callable[..., Any]
    turn: Callable[..., Any]
    sketched: Callable[..., Any]
    probed: Callable[..., Any]
    levels_of: Callable[..., Any]
    gathered: Callable[..., Any]
    interactions: Callable[..., Any]
    add_postings: Callable[..., Any]
    add_sorted: Callable[..., Any]
    matched: Callable[..., Any]
    scored: Callable[..., Any]
    add_scores: Callable[..., Any]
    highest: Callable[..., Any]
    reaching: Callable[..., Any]
    halves: Float[np.ndarray, " 65536"]
