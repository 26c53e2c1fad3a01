"""A segment: one immutable batch of documents with everything an index keeps about them.

    segments/<name>/
      documents.sqlite        id, title, text, parent, start, metadata; row number = position; with
      documents.*.npy         checksums of its rows, and which of them are passages, see `database`
      <set>.values.npy        vectors, packed (and <set>.scales.npy for int8 and int4)
      <set>.lengths.npy       how many vectors each document has (uint32); absent for one vector a document
      <set>.ids.npy           what each vector stands for (uint32), where the set has ids
      <set>.vocabulary.npy    the distinct ids of the segment, sorted, and
      <set>.frequencies.npy   in how many documents each of them stands
      <set>.postings.npy      the inverted index of sets that match exactly, and
      <set>.starts.npy        where the postings of each distinct id begin
      <set>.ranks.npy         for static sets, in place of values and ids: each document's distinct ids
      <set>.hnsw              the graph of pooled sets that are searched approximately
      blocks.npy              checksums of all these, see `counterpoint.index.checked`

Documents live in the segment, not in one database for the whole index, so that every file of a committed
index is immutable and has a checksum.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self, final

import numpy as np

from counterpoint.errors import DataError, ShapeError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS
from counterpoint.index.database import CHECKS, DATABASE, PASSAGES, Database, document_checks
from counterpoint.index.graph import Graph, write_graph
from counterpoint.index.inverted import Postings, write_postings
from counterpoint.index.npy import NpyWriter
from counterpoint.index.static import StaticIds, write_ranks
from counterpoint.index.store import SetLayout, VectorStore, offsets_of
from counterpoint.types import Document, Ragged

__all__ = ["Segment", "SegmentWriter"]

SCHEMA = """
CREATE TABLE documents (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL,
    parent TEXT, start INTEGER NOT NULL, metadata TEXT NOT NULL
)
"""


@final
class SegmentWriter:
    """Write documents and their vectors, batch by batch, into a new folder."""

    def __init__(self, folder: Path, layouts: Mapping[str, SetLayout]):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.layouts, self.documents = folder, layouts, 0
        self.vectors = dict.fromkeys(layouts, 0)
        self._frequencies: dict[str, dict[int, int]] = {name: {} for name, x in layouts.items() if x.ids}
        with ExitStack() as files:
            self._writers = {name: _set_writers(folder, name, x, files) for name, x in layouts.items()}
            own = {CHECKS: (np.uint64, (2,)), PASSAGES: (np.uint32, ())}
            self._writers[DATABASE] = {name: _writer(folder / name, x, files) for name, x in own.items()}
            # Durability comes from syncing the finished file before the commit, so SQLite need not journal.
            self._database = sqlite3.connect(folder / DATABASE, isolation_level=None)
            files.callback(self._database.close)
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.execute(SCHEMA)
            self._files = files.pop_all()

    def append(self, documents: Sequence[Document], vectors: Mapping[str, Ragged]) -> None:
        """Add documents with their vector sets.

        Raises:
            DataError: a document id that this segment already has, or a vector that is NaN or infinite.
        """
        for name, layout in self.layouts.items():
            fault = f"its vector in {name!r} is NaN or infinite; check the model, or leave the document out"
            _check_finite(vectors[name].values, vectors[name], documents, fault)
            self._append_set(name, layout, vectors[name], documents)
        self._append_documents(documents)
        self.documents += len(documents)

    def close(self) -> None:
        """Finish every file."""
        self._database.close()
        for writers in self._writers.values():
            for writer in writers.values():
                writer.close()
        for name, counts in self._frequencies.items():
            ids = np.fromiter(sorted(counts), np.uint32, len(counts))
            np.save(self.folder / f"{name}.vocabulary.npy", ids)
            np.save(
                self.folder / f"{name}.frequencies.npy", np.array([counts[int(i)] for i in ids], np.uint32)
            )
            if self.layouts[name].static:
                write_ranks(self.folder, name)
            if self.layouts[name].inverted:
                write_postings(self.folder, name)
        for name, layout in self.layouts.items():
            if layout.ann is not None and self.documents:
                store = VectorStore(CheckedFolder(self.folder), name, layout, self.documents)
                write_graph(self.folder, name, store, self.documents)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self.close()
        finally:
            self._files.close()

    def _append_set(self, name: str, layout: SetLayout, batch: Ragged, documents: Sequence[Document]) -> None:
        if layout.pooled and len(batch.values) != len(batch):
            raise ShapeError(f"{name!r} is pooled: {len(batch)} documents, {len(batch.values)} vectors")
        self.vectors[name] += len(batch.values)
        writers = self._writers[name]
        ids, lengths = None, batch.lengths
        if layout.ids and batch.ids is not None:
            ids = batch.ids.astype(np.uint32)
            owners, once = _distinct(ids, batch.offsets)
            self._count(name, once)
            if layout.static:
                ids, lengths = once, np.bincount(owners, minlength=len(batch))
        if not layout.static:
            with np.errstate(over="ignore"):
                encoded = CODECS[layout.codec].encode(batch.values)
            for array, rows in encoded.items():
                fault = f"its vector in {name!r} is too large for {layout.codec}; use the codec float32"
                _check_finite(rows, batch, documents, fault)
                writers[array].append(rows)
        if not layout.pooled:
            writers["lengths"].append(lengths.astype(np.uint32))
        if ids is not None:
            writers["ids"].append(ids)

    def _count(self, name: str, ids: np.ndarray) -> None:
        """Add to document frequencies the distinct ids of each of some documents."""
        totals = self._frequencies[name]
        for i, count in zip(*(x.tolist() for x in np.unique(ids, return_counts=True)), strict=True):
            totals[i] = totals.get(i, 0) + count

    def _append_documents(self, documents: Sequence[Document]) -> None:
        rows = [
            (self.documents + i, d.id, d.title, d.text, d.parent, d.start, _metadata(d))
            for i, d in enumerate(documents)
        ]
        with self._database:
            self._database.execute("BEGIN")
            try:
                self._database.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError as error:
                raise DataError(self._repeated(documents) or f"cannot store a document ({error})") from error
            except (UnicodeEncodeError, OverflowError) as error:
                raise DataError(f"cannot store a document ({error})") from error
        checks = [document_checks(row, columns) for row, *columns in rows]
        self._writers[DATABASE][CHECKS].append(np.array(checks, np.uint64).reshape(-1, 2))
        passages = [row for row, *_, parent, _, _ in rows if parent is not None]
        self._writers[DATABASE][PASSAGES].append(np.array(passages, np.uint32))

    def _repeated(self, documents: Sequence[Document]) -> str | None:
        """Which of these documents has the id of one before it, and where both are; None if none has."""
        places: dict[str, int] = {}
        for place, document in enumerate(documents, self.documents + 1):
            stored = self._database.execute(
                "SELECT row + 1 FROM documents WHERE id = ? AND row < ?", (document.id, self.documents)
            ).fetchone()
            first = places.setdefault(document.id, place if stored is None else stored[0])
            if first != place:
                return (
                    f"duplicate document id {document.id!r}: documents number {first:,} and {place:,} of "
                    "those to be indexed have it; give every document its own id"
                )
        return None


def _check_finite(rows: np.ndarray, batch: Ragged, documents: Sequence[Document], fault: str) -> None:
    """Refuse the rows of a batch that are not finite, naming the first document that has one."""
    if rows.dtype.kind == "f" and not np.isfinite(rows).all():
        row = np.argwhere(~np.isfinite(rows))[0, 0]
        document = documents[int(np.searchsorted(batch.offsets, row, side="right")) - 1]
        raise DataError(f"document {document.id!r}: {fault}; nothing was indexed")


def _distinct(ids: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The documents of a batch and their ids, each id once a document, both rising."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)).astype(np.uint64)
    pairs = np.unique((owners << np.uint64(32)) | ids)
    return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _metadata(document: Document) -> str:
    try:
        return json.dumps(dict(document.metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"document {document.id!r}: its metadata is not JSON ({error})") from error


def _set_writers(folder: Path, name: str, layout: SetLayout, files: ExitStack) -> dict[str, NpyWriter]:
    arrays = {} if layout.static else dict(CODECS[layout.codec].layout(layout.dim))
    if not layout.pooled:
        arrays["lengths"] = (np.uint32, ())
    if layout.ids:
        arrays["ids"] = (np.uint32, ())
    return {key: _writer(folder / f"{name}.{key}.npy", kind, files) for key, kind in arrays.items()}


def _writer(path: Path, kind: tuple[type[np.generic], tuple[int, ...]], files: ExitStack) -> NpyWriter:
    """A writer of rows, which `files` lets go of unless it is closed before."""
    writer = NpyWriter(path, *kind)
    files.callback(writer.abandon)
    return writer


@final
class Segment:
    """A finished segment, open for reading. Nothing is opened later, so a rebuild may delete its files."""

    def __init__(self, files: CheckedFolder, layouts: Mapping[str, SetLayout], documents: int):
        self.documents = documents
        static = [name for name, layout in layouts.items() if layout.static]
        self.static = {name: StaticIds(files, name, offsets_of(files, name, documents)) for name in static}
        self.stores = {
            name: VectorStore(files, name, x, documents) for name, x in layouts.items() if not x.static
        }
        inverted = [name for name, layout in layouts.items() if layout.inverted]
        self.postings = {name: Postings(files, name, self.stores[name]) for name in inverted}
        self.graphs = {
            name: Graph(files.file(f"{name}.hnsw"), documents) for name, x in layouts.items() if x.ann
        }
        self._counted = {
            name: (files.array(f"{name}.vocabulary.npy"), files.array(f"{name}.frequencies.npy"))
            for name, layout in layouts.items()
            if layout.ids
        }
        self._database = Database(files, documents)

    def frequencies(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Distinct ids of a set, and in how many documents each stands."""
        ids, counts = self._counted[name]
        return ids.all(), counts.all()

    def document(self, row: int) -> Document:
        """The document at a position."""
        return self._database.document(row)

    def row_of(self, document_id: str) -> int | None:
        """The position of a document, or None."""
        return self._database.row(document_id)

    def name_of(self, row: int) -> str:
        """The id of the document at a position."""
        return self._database.name(row)

    def text_bytes(self) -> int:
        """Bytes of titles and texts in UTF-8."""
        return self._database.text_bytes()

    def passages(self) -> list[tuple[str, str]]:
        """Id and parent of every passage that was cut from a document."""
        return self._database.passages()

    def parents(self) -> tuple[int, int]:
        """Number of documents that were cut into passages, and number of those passages."""
        return self._database.parents()

    def close(self) -> None:
        """Close the database; memory maps go with their arrays."""
        self._database.close()
