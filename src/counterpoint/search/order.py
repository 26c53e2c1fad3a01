"""The order of ranked documents, which is trec_eval's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

__all__ = ["trec_order"]


def trec_order(names: Sequence[str], scores: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Order rows by descending score; scores equal in single precision by descending name."""
    with np.errstate(over="ignore"):  # beyond single precision is infinite for trec_eval too
        keys = scores.astype(np.float32)
    order = np.argsort(-keys, kind="stable")
    ranked = keys[order]
    # Few scores are equal, so visit only the stretches that are.
    equal = np.concatenate([[False], ranked[1:] == ranked[:-1], [False]])
    starts, ends = np.flatnonzero(~equal[:-1] & equal[1:]), np.flatnonzero(equal[:-1] & ~equal[1:])
    for start, end in zip(starts, ends, strict=True):
        stretch = order[start : end + 1]
        order[start : end + 1] = sorted(stretch, key=names.__getitem__, reverse=True)
    return order
