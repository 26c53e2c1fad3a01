"""How much the means and centroids of an index still explain of the vectors of documents added later.

Means and centroids are fitted once, and later documents are stored as differences from them all the same. The
less these explain, the more is left for a few bits to store. So the share of the vectors' energy that they
explain is measured on documents that the fit has seen, and on documents that were added later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.later import Split, seen_and_later
from counterpoint.index.layout import SetLayout
from counterpoint.index.merge_rule import last_fit
from counterpoint.index.rotation import rotation
from counterpoint.index.rows import Rows, opened_rows
from counterpoint.index.segment import Segment
from counterpoint.index.shared_fit import SharedCentroids, SharedMeans, shared_fit
from counterpoint.types import rows_of_sets

__all__ = ["drift_of"]

DOCUMENTS = 256  # measured of each kind at most, so that few vectors are read of a large index
VECTORS = 2**14  # of these documents, at most
DRAWN = 256  # random rows that tell how much longer codes make a row

Fit = SharedMeans | SharedCentroids
Part = tuple[Rows, Fit, Split]
"""The rows of one segment, the fit they are compared with, and the documents to measure."""


def drift_of(segments: Sequence[Segment], layouts: Mapping[str, SetLayout]) -> dict[str, Any] | None:
    """Share of the vectors' energy that means or centroids explain, by vector set.

    The share is 1 − Σ‖x − base‖² / Σ‖x‖² over vectors x of live documents: of each kind at most `DOCUMENTS`
    and `VECTORS`, evenly spaced over the index. The base of x is the mean of its word, zero for a word
    without one, or a centroid near x. Documents that wait in 8 bits are compared with the last fit,
    which a compaction uses unless they are more than it was made on; all others with their own. Both sums are
    corrected for the energy that coding in few bits adds.

    Args:
        segments: of the index.
        layouts: of its vector sets.

    Returns:
        For each fitted set, `fit` (`means` or `centroids`), and `seen` and `later`: for documents that the
        fit has seen and for those added later, the share `explained`, at most 1, and how many `documents` it
        was measured on. The share is negative if zero would be a better base. That of `seen` is None if these
        documents have no vectors, or none is left. Sets without later vectors are left out; None if no set
        remains.

    Raises:
        ArtifactError: a file is damaged.
    """
    if not any(layout.fitted for layout in layouts.values()):
        return None
    split = seen_and_later(segments)
    if not any(len(later) for _, later in split):
        return None
    measured = {
        name: _measured(segments, layouts, name, split) for name, each in layouts.items() if each.fitted
    }
    return {name: found for name, found in measured.items() if found is not None} or None


def _measured(
    segments: Sequence[Segment], layouts: Mapping[str, SetLayout], name: str, split: Sequence[Split]
) -> dict[str, Any] | None:
    parts = list(_parts(segments, layouts, name, split))
    seen, later = (_explained([(rows, fit, split[i]) for rows, fit, split in parts]) for i in (0, 1))
    if later["explained"] is None:
        return None
    return {"fit": "means" if layouts[name].ids else "centroids", "seen": seen, "later": later}


def _parts(
    segments: Sequence[Segment], layouts: Mapping[str, SetLayout], name: str, split: Sequence[Split]
) -> Iterator[Part]:
    """The segments with the fit to compare with; those without means or centroids are left out."""
    last = last_fit([segment.entry for segment in segments])
    pieces = [(each.entry, each.pieces(layouts)[name]) for each in segments]
    fits = {
        fit: shared_fit([piece for entry, piece in pieces if entry.fit == fit], name, layouts[name])
        for fit in dict.fromkeys(entry.fit for entry, _ in pieces if entry.fit is not None)
    }
    for (entry, piece), mine in zip(pieces, split, strict=True):
        waiting = entry.fit is None and not piece.layout.fitted
        name_of_fit = last.fit if waiting and last is not None else entry.fit
        fit = None if name_of_fit is None else fits[name_of_fit]
        if fit is not None:
            yield opened_rows(piece, name), fit, mine


def _explained(parts: Sequence[tuple[Rows, Fit, Int[np.ndarray, " k"]]]) -> dict[str, Any]:
    """The share explained in some documents of all parts, evenly spaced."""
    cuts = np.cumsum([0, *(len(documents) for _, _, documents in parts)])
    total = int(cuts[-1])
    count = min(DOCUMENTS, total)
    chosen, wheres = np.arange(count) * total // max(count, 1), []
    for (rows, _, documents), first, end in zip(parts, cuts[:-1], cuts[1:], strict=True):
        mine = chosen[(chosen >= first) & (chosen < end)] - first
        wheres.append(rows_of_sets(rows.offsets, documents[mine])[0])
    step = max(1, -(-sum(map(len, wheres)) // VECTORS))
    energies = [
        _energies(rows, fit, where[::step]) for (rows, fit, _), where in zip(parts, wheres, strict=True)
    ]
    left, whole = (sum(each[i] for each in energies) for i in (0, 1))
    return {"explained": 1 - left / whole if whole > 0 else None, "documents": count}


def _energies(rows: Rows, fit: Fit, where: Int[np.ndarray, " k"]) -> tuple[float, float]:
    """The energy of some rows minus their bases, and that of the rows."""
    values, excess = rows.values(where) @ rotation(rows.layout.dim), _excess(rows, where)
    return _energy(values - _bases(rows, fit, where, values)) - excess, _energy(values) - excess


def _bases(
    rows: Rows, fit: Fit, where: Int[np.ndarray, " k"], values: Float[np.ndarray, "k d"]
) -> Float[np.ndarray, "k d"]:
    """The rotated mean or centroid from which each row is a difference, or would be after a compaction."""
    if isinstance(fit, SharedMeans):
        ids = rows.ids(where)
        assert ids is not None
        return fit.rows_of(ids)
    return fit.decoded[fit.nearest(values) if rows.centroids is None else rows.centroids.of(where)]


def _excess(rows: Rows, where: Int[np.ndarray, " k"]) -> float:
    """The energy that rows have gained by coding.

    The factors of codes of few bits keep inner products right in expectation, and make what they code longer
    (see `counterpoint.index.codec.Bits`): in one bit, it has π/2 times the energy. Without correction, rows
    of few bits would seem to be explained less than those of 8 bits. After the rotation, what is coded has
    any direction, so random rows tell how much it grows.
    """
    codec, dim = CODECS[rows.layout.codec], rows.layout.dim
    if not isinstance(codec, Bits):
        return 0.0
    drawn = np.random.default_rng(0).standard_normal((DRAWN, dim), np.float32)
    grown, stored = (
        codec.integers(arrays["values"], dim) * arrays["scales"].astype(np.float32)[:, None]
        for arrays in (codec.packed(drawn), rows.stored(where))
    )
    return (1 - _energy(drawn) / _energy(grown)) * _energy(stored)


def _energy(rows: Float[np.ndarray, "k d"]) -> float:
    return float(np.square(rows, dtype=np.float64).sum())
