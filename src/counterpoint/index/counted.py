"""Write the ids of a vector set's rows, and the document frequency of each id.

<set>.ids.npy           id of each row (uint32), or
<set>.ranks.npy         its place in the vocabulary, in two bytes if these fit
<set>.vocabulary.npy    the distinct ids of the segment, ascending
<set>.frequencies.npy   document frequency of each id
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int

from counterpoint.errors import DataError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import NOTHING, Kept, NpyWriter, Written, open_npy
from counterpoint.index.rows import offsets_of
from counterpoint.types import Document, Ragged

__all__ = ["IdCounts", "check_finite", "distinct", "write_counts"]

CHUNK = 2**22  # ids looked up at a time; bounds the memory of a build
DOCUMENTS = 2**12  # counted at a time


@final
class IdCounts:
    """Ids, appended batch by batch; memory grows with the number of distinct ids.

    With `ranked`, places in the vocabulary are stored instead of ids. `kept` are the valid files of an
    interrupted build, and the number of ids of each of its documents.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        ranked: bool,
        kept: tuple[Kept, Int[np.ndarray, " n"]] = (NOTHING, np.zeros(0, np.int64)),
    ):
        self._folder, self._name, self._ranked = folder, name, ranked
        file = folder / f"{name}.{'raw_ids' if ranked else 'ids'}.npy"
        self._writer = NpyWriter(file, np.uint32, kept=kept[0])
        offsets = np.concatenate([[0], np.cumsum(kept[1], dtype=np.int64)])
        self._totals = _totals(self._writer.read(), offsets)

    def append(self, ids: Int[np.ndarray, " n"], offsets: Int[np.ndarray, " b1"]) -> None:
        """Add the ids of the next documents."""
        stored = ids.astype(np.uint32)
        self._writer.append(stored)
        _add(self._totals, stored, offsets)

    def sync(self) -> dict[str, Written]:
        """Sync all ids to disk."""
        return {self._writer.path.name: self._writer.sync()}

    def close(self) -> None:
        """Write the vocabulary, and the ids' places in it if `ranked`."""
        self._writer.close()
        ids, counts = _table(self._totals)
        np.save(self._folder / f"{self._name}.vocabulary.npy", ids)
        np.save(self._folder / f"{self._name}.frequencies.npy", counts)
        if self._ranked:
            raw, dtype = open_npy(self._writer.path), np.uint16 if len(ids) <= 2**16 else np.uint32
            with NpyWriter(self._folder / f"{self._name}.ranks.npy", dtype) as ranks:
                for at in range(0, len(raw), CHUNK):
                    ranks.append(np.searchsorted(ids, raw[at : at + CHUNK]).astype(dtype))

    def abandon(self) -> None:
        """Close the file as it is."""
        self._writer.abandon()


def write_counts(folder: Path, name: str, layout: SetLayout, documents: int) -> None:
    """Write vocabulary and frequencies of a set with complete ids; with ranks, only the frequencies."""
    pooled = layout.pooled
    offsets = np.arange(documents + 1) if pooled else offsets_of(CheckedFolder(folder), name, documents)
    ranked = (folder / f"{name}.ranks.npy").exists()
    ids = open_npy(folder / f"{name}.{'ranks' if ranked else 'ids'}.npy")
    vocabulary, counts = _table(_totals(ids, offsets))
    if not ranked:
        np.save(folder / f"{name}.vocabulary.npy", vocabulary)
    np.save(folder / f"{name}.frequencies.npy", counts)


def _totals(ids: Int[np.ndarray, " n"], offsets: Int[np.ndarray, " b1"]) -> dict[int, int]:
    """The number of documents in which each id occurs."""
    totals: dict[int, int] = {}
    for first in range(0, len(offsets) - 1, DOCUMENTS):
        mine = offsets[first : first + DOCUMENTS + 1]
        _add(totals, ids[mine[0] : mine[-1]], mine - mine[0])
    return totals


def _add(totals: dict[int, int], ids: Int[np.ndarray, " n"], offsets: Int[np.ndarray, " b1"]) -> None:
    """Add the number of documents of a batch in which each id occurs."""
    _, once = distinct(ids, offsets)
    for number, count in zip(*(x.tolist() for x in np.unique(once, return_counts=True)), strict=True):
        totals[number] = totals.get(number, 0) + count


def _table(totals: dict[int, int]) -> tuple[Int[np.ndarray, " v"], Int[np.ndarray, " v"]]:
    ids = np.fromiter(sorted(totals), np.uint32, len(totals))
    return ids, np.array([totals[int(number)] for number in ids], np.uint32)


def distinct(
    ids: Int[np.ndarray, " n"], offsets: Int[np.ndarray, " b1"]
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
    """The documents of a batch and their ids, each id once per document, both ascending."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)).astype(np.uint64)
    pairs = np.unique((owners << np.uint64(32)) | ids.astype(np.uint64))
    return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def check_finite(
    rows: np.ndarray,
    batch: Ragged,
    documents: Sequence[Document],
    name: str,
    fault: str = "is NaN or infinite; check the model, or leave the document out",
) -> None:
    """Check that all rows of a batch of the set `name` are finite.

    Raises:
        DataError: naming the first document with a row that is not; `fault` says what is wrong.
    """
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        row = np.argwhere(~np.isfinite(rows))[0, 0]
        document = documents[int(np.searchsorted(batch.offsets, row, side="right")) - 1]
        raise DataError(f"document {document.id!r}: its vector in {name!r} {fault}; nothing was indexed")
