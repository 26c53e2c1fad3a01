"""The packed postings of one BM25 term: the gaps between its documents, then its frequencies less one.

Both are lists of `packing`. A gap is the number of documents skipped before the next one. `saturated`
has a compiled twin, `counterpoint.index.compiled.postings`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from counterpoint.index.packing import unpack

__all__ = ["Live", "Scored", "saturated", "unpacked"]

Live = Bool[np.ndarray, " n"] | None
"""Which documents are not deleted; None for all."""
Scored = tuple[Int[np.ndarray, " p"], Float[np.ndarray, " p"]]
"""The documents with a term, ascending, and its score in each."""


def unpacked(
    packed: UInt8[np.ndarray, " b"], count: int, documents: int
) -> tuple[Int[np.ndarray, " p"], Int[np.ndarray, " p"]]:
    """The documents with a term, ascending, and its count in each.

    Raises:
        ValueError: these bytes are not `count` postings of so many documents.
    """
    gaps, used = unpack(packed, count)
    counts, rest = unpack(packed[used:], count)
    gaps += 1
    rows = gaps.cumsum()
    rows -= 1
    if used + rest != len(packed) or rows[-1:] >= documents:
        raise ValueError("they are those of another collection")
    counts += 1
    return rows, counts


def saturated(
    packed: UInt8[np.ndarray, " b"], count: int, norms: Float[np.ndarray, " d"], live: Live
) -> Scored:
    """The live documents with a term, and tf / (tf + norm) of each.

    Args:
        packed: the postings.
        count: how many there are, at least one.
        norms: by document, k1 (1 - b + b·l/avgl).
        live: as in `Live`.

    Raises:
        ValueError: as for `unpacked`.
    """
    rows, counts = unpacked(packed, count, len(norms))
    if live is not None:
        kept = live[rows]
        rows, counts = rows[kept], counts[kept]
    shares = norms[rows]  # changed in place, as allocating arrays costs as much as the sums
    shares += counts
    np.divide(counts, shares, out=shares)
    return rows, shares
