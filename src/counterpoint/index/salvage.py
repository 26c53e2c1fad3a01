"""Save the documents of a damaged segment one by one: those whose rows pass their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import BLOCKS, CheckedFolder
from counterpoint.index.database import CHECKS, DATABASE, PASSAGES
from counterpoint.index.layout import SetLayout
from counterpoint.index.lexical_builder import terms_again
from counterpoint.index.manifest import Manifest, SegmentEntry
from counterpoint.index.ours import mark, new_name, remove_temporary
from counterpoint.index.piece import Piece
from counterpoint.index.rows import offsets_of, opened_rows
from counterpoint.index.segment import Segment, SegmentWriter
from counterpoint.index.settings import TextModel
from counterpoint.index.static_ids import StaticIds
from counterpoint.index.stream import DocumentStream
from counterpoint.index.token_pooling import factors_of
from counterpoint.types import Document

__all__ = ["Salvage", "open_damaged", "opened_salvage"]

TOGETHER = 512  # documents read at a time; bounds the memory


@final
@dataclass(frozen=True)
class Salvage:
    """The readable documents of a damaged segment.

    Attributes:
        segment: the damaged segment.
        pieces: its piece of each vector set.
        rows: of the intact documents that are not deleted, ascending.
        lost: of the damaged documents that are not deleted.
        encoded: whether the model encodes the vectors; else they are copied.
    """

    segment: Segment
    pieces: Mapping[str, Piece]
    rows: Int[np.ndarray, " k"]
    lost: Int[np.ndarray, " l"]
    encoded: bool

    def names_lost(self) -> Iterator[tuple[int, str | None]]:
        """The row and id of each damaged document; the id is None if it is damaged, too."""
        for row in self.lost.tolist():
            name = None
            with suppress(ArtifactError):
                (name,) = self.segment.database.names([row])
            yield row, name

    def write(self, folder: Path, manifest: Manifest, model: TextModel | None) -> SegmentEntry:
        """Write the intact documents into a new segment of the index in `folder`."""
        old = self.segment.entry
        entry = replace(old, name=new_name(), documents=0, vectors={}, lexical=None, deletes=None, deleted=0)
        path, layouts = folder / entry.path, {n: p.layout for n, p in self.pieces.items()}
        mark(path)
        fits = {} if self.encoded else {n: [p] for n, p in self.pieces.items() if p.layout.fitted}
        fields = manifest.settings.get("metadata", {})
        with SegmentWriter(path, layouts, fields, fit=fits) as writer:
            if self.encoded:
                stream = DocumentStream(self._documents(), model, pool=factors_of(layouts))
                for batch, vectors in stream.batches():
                    writer.append(batch, vectors or {})
            else:
                for at in range(0, len(self.rows), TOGETHER):
                    writer.copy(self.segment, self.pieces, self.rows[at : at + TOGETHER])
        remove_temporary(path)
        entry = replace(entry, documents=writer.documents, vectors=writer.vectors)
        if self.encoded and old.fit is not None:
            entry = replace(entry, fit=entry.name, fitted=entry.documents)
        if not manifest.has_lexical:
            return entry
        return replace(entry, lexical=terms_again(folder, manifest, self._documents(), entry.home))

    def _documents(self) -> Iterator[Document]:
        return self.segment.database.read(self.rows)


def opened_salvage(
    segment: Segment, layouts: Mapping[str, SetLayout], lost: tuple[bool, set[str]], model: TextModel | None
) -> Salvage:
    """Try to read every document of a segment that is not deleted.

    Args:
        segment: open, with its deletes; some of its files are damaged.
        layouts: of the index's vector sets.
        lost: whether texts are damaged, and the sets with damage. Nothing else is read here. If reading it
            fails later, that is an error and drops no document.
        model: encodes all documents again if a set is damaged; None to save what is intact.
    """
    pieces = segment.pieces(layouts)
    texts, sets = lost
    encoded = model is not None and bool(sets)
    reads: list[Callable[[Int[np.ndarray, " k"]], object]] = []
    if texts:
        reads.append(lambda rows: segment.database.documents_at(rows.tolist()))
    if not encoded:
        reads += [_reader(name, pieces[name]) for name in sets]
    kept = [rows for rows in _kept(segment.rows, reads) if len(rows)]
    rows = np.concatenate(kept) if kept else np.zeros(0, np.int64)
    return Salvage(segment, pieces, rows, np.setdiff1d(segment.rows, rows), encoded)


def _kept(
    rows: Int[np.ndarray, " n"], reads: list[Callable[[Int[np.ndarray, " k"]], object]]
) -> Iterator[Int[np.ndarray, " k"]]:
    """Those that every reader can read: many at a time, and in halves after a failure."""
    waiting = [rows[at : at + TOGETHER] for at in range(0, len(rows), TOGETHER)][::-1]
    while waiting:
        some = waiting.pop()
        try:
            for read in reads:
                read(some)
        except ArtifactError:
            if len(some) > 1:
                waiting += [some[len(some) // 2 :], some[: len(some) // 2]]
        else:
            yield some


def _reader(name: str, piece: Piece) -> Callable[[Int[np.ndarray, " k"]], object]:
    """A function that reads all data of a set for some documents, and fails if it is damaged."""

    def static(rows: Int[np.ndarray, " k"]) -> object:
        ids = StaticIds(piece.files, name, offsets_of(piece.files, name, piece.documents))
        return ids.vocabulary, [ids.ranks[ids.offsets[row] : ids.offsets[row + 1]] for row in rows]

    return static if piece.layout.kind == "static" else lambda rows: opened_rows(piece, name).take(rows)


def open_damaged(folder: Path, manifest: Manifest, entry: SegmentEntry, damaged: set[str]) -> Segment:
    """Open a segment of which some files are damaged.

    Raises:
        ArtifactError: none of its documents can be read.
    """
    path = folder / entry.path
    listed, absent = manifest.files_of(entry.path), set[str]()
    if damaged & {BLOCKS, PASSAGES}:  # then files are checked whole, and any row may be a passage
        listed = {name: each for name, each in listed.items() if name not in (BLOCKS, PASSAGES)}
    for name in sorted(damaged & listed.keys() - {DATABASE}):
        try:
            CheckedFolder(path, listed, but=listed.keys() - {name, BLOCKS})
        except ArtifactError:
            absent.add(name)
    trusted = {DATABASE} & damaged
    if trusted and (CHECKS not in listed or CHECKS in absent):
        raise ArtifactError("none of its rows can be checked", path=path / DATABASE)
    return Segment(CheckedFolder(path, listed, but=absent, trusted=trusted), entry)
