"""The approximate document of a row, from which the search for the exact one starts."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, UInt32

__all__ = ["BUCKET", "documents_near"]

BUCKET = 32  # rows, of which only the first one's document is stored


def documents_near(offsets: Int[np.ndarray, " n1"]) -> UInt32[np.ndarray, " b"]:
    """The document of the first of every `BUCKET` rows, and the last document: 1/8 byte per row."""
    firsts = np.arange(0, offsets[-1], BUCKET)
    owners = np.searchsorted(offsets, firsts, side="right") - 1
    return np.append(owners, max(len(offsets) - 2, 0)).astype(np.uint32)
