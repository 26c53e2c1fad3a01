"""A segment: one immutable batch of documents with everything an index keeps about them.

    segments/<name>/
      documents.sqlite        id, title, text, parent, start, metadata; row number = position
      documents.*.npy         checksums of its rows, and which of them are passages, see `database`
      order.npy               in a shard: each document's place in the order of adding; and a copy of it
      <set>.*                 files of a vector set, see `counterpoint.index.kinds`
      blocks.npy              checksums of all these, see `counterpoint.index.checked`
      progress.json, *.raw*   only during a build, see `counterpoint.index.progress`

Documents live in the segment, not in one database for the whole index, so that every file of a committed
index is immutable and has a checksum.
"""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Self, final

import numpy as np
from jaxtyping import Bool, Int

from counterpoint.errors import ArtifactError, DataError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.database import CHECKS, DATABASE, PASSAGES, Database, document_checks
from counterpoint.index.deletes import Deletes
from counterpoint.index.joining import JoinedWriter
from counterpoint.index.kinds import KINDS
from counterpoint.index.layout import SetLayout
from counterpoint.index.manifest import SegmentEntry
from counterpoint.index.metadata import sql_types, typed
from counterpoint.index.npy import NOTHING, Kept, NpyWriter
from counterpoint.index.ours import made
from counterpoint.index.piece import Piece
from counterpoint.index.progress import PROGRESS, Progress
from counterpoint.index.store import VectorWriter
from counterpoint.index.where import FieldType
from counterpoint.types import Document, Ragged

__all__ = ["ORDER", "Segment", "SegmentWriter"]

SCHEMA = """
CREATE TABLE documents (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL,
    parent TEXT, start INTEGER NOT NULL, metadata TEXT NOT NULL
)
"""

ORDER = ("order.npy", "order.copy.npy")
"""The same twice, for a repair: nothing else says it."""
MOST = 2**32 - 1  # documents: their positions have 32 bits in postings
Row = tuple[int, str, str, str, str | None, int, str]
"""A row of the database."""


@final
class SegmentWriter:
    """Write documents and their vectors, batch by batch, into a new folder.

    Args:
        folder: of the segment.
        layouts: of its vector sets.
        fields: types of the declared metadata fields.
        progress: of an interrupted build of the same segment. Give its documents to `restore`, in order,
            before anything is appended.
        fit: by set, pieces whose fit (centroids or means) is reused for coding (`JoinedWriter`).

    Raises:
        ArtifactError: the files of the interrupted build are damaged.
    """

    def __init__(
        self,
        folder: Path,
        layouts: Mapping[str, SetLayout],
        fields: Mapping[str, FieldType] = MappingProxyType({}),
        progress: Progress | None = None,
        fit: Mapping[str, Sequence[Piece]] = MappingProxyType({}),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.documents, self._fields = folder, 0, fields
        kept = NOTHING if progress is None else progress.files
        for path in made(folder):
            if path.name not in (PROGRESS, *kept):
                path.unlink()
        with ExitStack() as files:
            self._sets: dict[str, VectorWriter] = {}
            for name, layout in layouts.items():
                if name in fit:
                    self._sets[name] = JoinedWriter(folder, name, layout, fit[name])
                else:
                    self._sets[name] = KINDS[layout.kind].write(folder, name, layout, kept)
                files.callback(self._sets[name].abandon)
                if progress is not None:
                    self._sets[name].vectors = progress.vectors[name]
            self._checks = NpyWriter(folder / CHECKS, np.uint64, (2,), kept=kept)
            files.callback(self._checks.abandon)
            self._passages = NpyWriter(folder / PASSAGES, np.uint32)
            files.callback(self._passages.abandon)
            self._known = self._checks.read()
            # The finished file is synced before the commit, so SQLite needs no journal.
            self._database = sqlite3.connect(folder / DATABASE, isolation_level=None)
            files.callback(self._database.close)
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.execute(SCHEMA)
            for column, kind in sql_types(fields).items():
                self._database.execute(f"ALTER TABLE documents ADD COLUMN {column} {kind}")
            self._files = files.pop_all()
        self._places: list[Int[np.ndarray, " k"]] = []

    @property
    def vectors(self) -> dict[str, int]:
        """Number of vectors of each set."""
        return {name: writer.vectors for name, writer in self._sets.items()}

    def restore(self, documents: Sequence[Document]) -> None:
        """Add documents whose vectors an interrupted build has encoded.

        Raises:
            DataError: a document is not the one that was encoded.
        """
        documents = [typed(document, self._fields) for document in documents]
        rows = self._rows_of(documents)
        for row, *columns in rows:
            own, whole = document_checks(row, columns)
            if whole != self._known[row, 1]:
                what = "has other text or metadata than" if own == self._known[row, 0] else "is not"
                raise DataError(
                    f"--resume: document number {row + 1:,}, {columns[0]!r}, {what} the one that was encoded "
                    "before; give the same documents, or build from the start without --resume"
                )
        self._insert(documents, rows)

    def sync(self) -> Kept:
        """Sync what was appended to disk; return what the build's progress record keeps about files."""
        written = {CHECKS: self._checks.sync()}
        for writer in self._sets.values():
            written |= writer.sync()
        return written

    def append(
        self,
        documents: Sequence[Document],
        vectors: Mapping[str, Ragged],
        places: Int[np.ndarray, " k"] | None = None,
    ) -> None:
        """Add documents with their vector sets.

        Args:
            documents: to add.
            vectors: of each set.
            places: in an index of shards, their places in the order of adding.

        Raises:
            DataError: this segment already has the document id, a vector cannot be stored, or a metadata
                value does not fit the declared type of its field.
        """
        if self.documents + len(documents) > MOST:
            raise DataError(f"an index holds at most {MOST:,} documents; build several, each of a part")
        documents = [typed(document, self._fields) for document in documents]
        for name, writer in self._sets.items():
            writer.append(vectors[name], documents)
        self._append_documents(documents)
        if places is not None:
            self._places.append(places)

    def copy(
        self,
        segment: Segment,
        pieces: Mapping[str, Piece],
        rows: Int[np.ndarray, " k"],
        places: Int[np.ndarray, " k"] | None = None,
    ) -> None:
        """Add the documents in some rows of another segment, with everything in its pieces about them.

        `places` are those in the order of adding; None for those of the segment, if it has some.
        """
        if places is None and segment.places is not None:
            places = segment.places[rows]
        if places is not None:
            self._places.append(places)
        for name, writer in self._sets.items():
            writer.copy(pieces[name], rows)
        self._append_documents(segment.database.documents_at(rows.tolist()))

    def close(self) -> None:
        """Finish every file."""
        for i, column in enumerate(sql_types(self._fields)):
            self._database.execute(f"CREATE INDEX field_{i} ON documents ({column})")
        if self._passages.rows:
            self._database.execute("CREATE INDEX parents ON documents (parent) WHERE parent IS NOT NULL")
        self._database.close()
        for writer in (self._checks, self._passages, *self._sets.values()):
            writer.close()
        if self._places:
            for name in ORDER:
                np.save(self.folder / name, np.concatenate(self._places))

    def abandon(self) -> None:
        """Close every file as it is; does nothing after `close`."""
        self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self.close()
        finally:
            self.abandon()

    def _append_documents(self, documents: Sequence[Document]) -> None:
        rows = self._rows_of(documents)
        self._insert(documents, rows)
        checks = [document_checks(row, columns) for row, *columns in rows]
        self._checks.append(np.array(checks, np.uint64).reshape(-1, 2))

    def _rows_of(self, documents: Sequence[Document]) -> list[Row]:
        return [
            (self.documents + i, d.id, d.title, d.text, d.parent, d.start, _metadata(d))
            for i, d in enumerate(documents)
        ]

    def _insert(self, documents: Sequence[Document], rows: Sequence[Row]) -> None:
        holes = ", ".join("?" for _ in range(7 + len(self._fields)))
        declared = [[d.metadata.get(name) for name in self._fields] for d in documents]
        with self._database:
            self._database.execute("BEGIN")
            try:
                every = ((*row, *values) for row, values in zip(rows, declared, strict=True))
                self._database.executemany(f"INSERT INTO documents VALUES ({holes})", every)
            except sqlite3.IntegrityError as error:
                raise DataError(self._repeated(documents) or f"cannot store a document ({error})") from error
            except (UnicodeEncodeError, OverflowError) as error:
                raise DataError(f"cannot store a document ({error})") from error
        passages = [row for row, *_, parent, _, _ in rows if parent is not None]
        self._passages.append(np.array(passages, np.uint32))
        self.documents += len(documents)

    def _repeated(self, documents: Sequence[Document]) -> str | None:
        """The message for the first duplicate id in a batch, with both places; None if there is none."""
        places: dict[str, int] = {}
        for place, document in enumerate(documents, self.documents + 1):
            stored = self._database.execute(
                "SELECT row + 1 FROM documents WHERE id = ? AND row < ?", (document.id, self.documents)
            ).fetchone()
            first = places.setdefault(document.id, place if stored is None else stored[0])
            if first != place:
                return (
                    f"duplicate document id {document.id!r}: documents number {first:,} and {place:,} of "
                    "the input have it; give every document its own id"
                )
        return None


def _metadata(document: Document) -> str:
    try:
        return json.dumps(dict(document.metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"document {document.id!r}: its metadata is not JSON ({error})") from error


@final
class Segment:
    """A finished segment, open for reading. All files are opened at once, so a rebuild may delete them.

    Attributes:
        files: of its vector sets; stores open them.
        database: its documents, including deleted ones.
        documents: how many it has, including deleted ones.
        deletes: which of them are deleted; None if none is.
    """

    def __init__(self, files: CheckedFolder, entry: SegmentEntry, terms: CheckedFolder | None = None):
        self.files, self.entry, self.terms = files, entry, terms
        self.documents, self.deletes = entry.documents, None
        self.database = Database(files, entry.documents)

    def pieces(self, layouts: Mapping[str, SetLayout]) -> dict[str, Piece]:
        """Its piece of each vector set, by the layouts of the index."""
        own = self.entry.layouts(layouts)
        return {name: Piece(self.files, self.documents, layout, self.live) for name, layout in own.items()}

    def at(self, entry: SegmentEntry, deletes: Deletes | None) -> Segment:
        """The same segment as of a later commit. Files are shared, so closing one closes both."""
        other = copy.copy(self)
        other.entry, other.deletes = entry, deletes
        return other

    @property
    def places(self) -> Int[np.ndarray, " n"] | None:
        """For each document, its place in the order of adding; None outside of shards."""
        if ORDER[0] not in self.files:
            return None
        found = self.files.array(ORDER[0]).all()
        if found.dtype != np.int64 or found.shape != (self.documents,):
            raise ArtifactError("the order of documents does not fit this segment", path=self.files.folder)
        return found

    @property
    def live(self) -> Bool[np.ndarray, " n"] | None:
        """For each document, whether it is not deleted; None if none is deleted."""
        return None if self.deletes is None else self.deletes.live

    @property
    def rows(self) -> Int[np.ndarray, " k"]:
        """The positions of the documents that are not deleted, ascending."""
        return np.arange(self.documents) if self.live is None else np.flatnonzero(self.live)

    @property
    def gone(self) -> Int[np.ndarray, " k"]:
        """The positions of the deleted documents, ascending."""
        return np.zeros(0, np.int64) if self.deletes is None else self.deletes.rows

    def row_of(self, document_id: str) -> int | None:
        """The position of a document; None if it is not here or deleted."""
        row = self.database.row(document_id)
        return None if row is None or (self.live is not None and not self.live[row]) else row

    def rows_of(self, ids: Sequence[str]) -> dict[str, list[int]]:
        """For each id, the positions of its document and of all passages cut from it."""
        found = self.database.rows_of(ids)
        if self.live is None:
            return found
        left = {name: [row for row in rows if self.live[row]] for name, rows in found.items()}
        return {name: rows for name, rows in left.items() if rows}
