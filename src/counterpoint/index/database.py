"""The documents of a segment: a SQLite database, written once, and checksums of its rows.

    documents.sqlite         id, title, text, parent, start, metadata; row number = position
    documents.checks.npy     two 64-bit XXH3 per row: of its id, and of the whole row
    documents.passages.npy   the rows that are passages of a longer document (uint32)

SQLite chooses the pages that it reads, so its file cannot be checked block by block as arrays are. Each row
is checked when it is read. A query over all rows checks the whole file first, once. In an index of an earlier
version, which has no row checksums, every query does.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import weakref
from collections.abc import Collection, Iterator, Sequence
from typing import Any, final

import numpy as np
import xxhash
from jaxtyping import Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import DAMAGED, REMEDY, CheckedFolder
from counterpoint.types import Document

__all__ = ["CHECKS", "COLUMNS", "DATABASE", "PASSAGES", "Database", "as_os_error", "document_checks"]

DATABASE = "documents.sqlite"
CHECKS = "documents.checks.npy"
PASSAGES = "documents.passages.npy"
COLUMNS = "id, title, text, parent, start, metadata"
UNICODE = json.JSONEncoder(ensure_ascii=False)  # made once, as that takes as long as encoding a short row
TOGETHER = 500  # rows per statement; every SQLite allows 999 values


Integers = Sequence[int] | Int[np.ndarray, " k"]
KNOWN = 2**16
"""Ids that are kept in memory: some megabytes. A run needs hundreds of them for each query."""
LEAVING_OUT = "WHERE row NOT IN (SELECT value FROM json_each(?))"


def document_checks(row: int, columns: Sequence[str | int | None]) -> tuple[int, int]:
    """The checksums of a row: of its id, and of all its columns."""
    whole = UNICODE.encode([row, *columns]).encode(errors="surrogatepass")
    return _id_check(row, columns[0]), xxhash.xxh3_64_intdigest(whole)


def as_os_error(error: sqlite3.OperationalError) -> OSError:
    """Convert SQLite's error for a full or failing disk to the operating system's."""
    codes = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_IOERR: errno.EIO}
    code = codes.get(error.sqlite_errorcode & 0xFF, errno.EIO)
    return OSError(code, f"{os.strerror(code)} ({error})")


def _id_check(row: int, document_id: object) -> int:
    return xxhash.xxh3_64_intdigest(f"{row} {document_id}".encode(errors="surrogatepass"))


@final
class Database:
    """The documents of a segment, of which there must be so many, open for reading.

    Raises:
        ArtifactError: the database is damaged, or has another number of documents. Every method raises it,
            too, if what it reads is damaged, or the database was closed.
    """

    def __init__(self, files: CheckedFolder, documents: int):
        self._file, self._documents = files.file(DATABASE), documents
        self._known: dict[int, str] = {}
        self._checks = files.array(CHECKS) if CHECKS in files else None
        self._passages = files.array(PASSAGES) if PASSAGES in files else None
        # immutable=1: no lock file and no journal next to a committed, read-only file.
        uri = f"{self._file.path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            self._connection: sqlite3.Connection | None = sqlite3.connect(
                uri, uri=True, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        # A connection refers to itself, so without this the file would stay open until cycles are collected.
        self._closing = weakref.finalize(self, self._connection.close)
        self._closing.atexit = False
        # SQLite opens the file at the first query. After that a rebuild may delete it.
        found = self._answer("SELECT coalesce(max(row) + 1, 0) FROM documents")[0][0]
        if found != documents:
            self.close()
            raise ArtifactError(f"has {found} documents, not {documents}", path=self._file.path)

    def documents_at(self, rows: Sequence[int]) -> list[Document]:
        """The documents of some rows, in the order asked for."""
        if self._checks is None:
            self._file.whole()
        wanted = sorted(set(rows))
        found = {row: columns for row, *columns in self._having(f"row, {COLUMNS}", "row", wanted)}
        try:
            checks = [document_checks(row, found[row])[1] for row in wanted if row in found]
        except TypeError as error:  # bytes where there was text
            raise ArtifactError(DAMAGED, path=self._file.path) from error
        self._check(found, wanted, checks, 1)
        return [_document(*found[row]) for row in rows]

    def read(self, rows: Integers) -> Iterator[Document]:
        """The same for any number of rows, read one batch after another."""
        for at in range(0, len(rows), TOGETHER):
            yield from self.documents_at([int(row) for row in rows[at : at + TOGETHER]])

    def names(self, rows: Sequence[int]) -> list[str]:
        """The ids of the documents of some rows, in the order asked for."""
        if self._checks is None:
            self._file.whole()
        known = self._known  # other threads only add to it, or replace it
        if wanted := sorted({row for row in rows if row not in known}):
            found: dict[int, str] = dict(self._having("row, id", "row", wanted))
            self._check(found, wanted, [_id_check(row, found[row]) for row in wanted if row in found], 0)
            if len(known) + len(found) > KNOWN:
                known = self._known = {row: known[row] for row in rows if row in known}
            known.update(found)
        return [known[row] for row in rows]

    def row(self, document_id: str) -> int | None:
        """The row of a document; None if there is none."""
        if not _storable(document_id):
            return None
        found = self._answer("SELECT row FROM documents WHERE id = ?", document_id)
        if self._checks is None or not found:  # a damaged file may hide it
            self._file.whole()
            return found[0][0] if found else None
        row = found[0][0]
        known = isinstance(row, int) and 0 <= row < self._documents
        if not known or _id_check(row, document_id) != self._checks[row : row + 1][0, 0]:
            raise ArtifactError(DAMAGED, path=self._file.path)
        return row

    def rows_of(self, ids: Sequence[str]) -> dict[str, list[int]]:
        """For each id, the rows of its document and of the passages cut from it.

        Unknown ids are left out. Deleted documents are included.
        """
        self._file.whole()  # otherwise an id hidden by damage could be added a second time
        wanted = [name for name in ids if _storable(name)]
        found: dict[str, list[int]] = {}
        for column in ("id", "parent") if self._has_passages else ("id",):
            for name, row in self._having(f"{column}, row", column, wanted):
                found.setdefault(name, []).append(row)
        return found

    def is_passage(self, row: int) -> bool:
        """Whether a document was cut from a longer one."""
        if not self._has_passages:
            return False
        if self._checks is None:
            self._file.whole()
        found = self._answer("SELECT parent FROM documents WHERE row = ?", row)
        if not found:
            raise self._without(row)
        return found[0][0] is not None

    @property
    def _has_passages(self) -> bool:
        return self._passages is None or len(self._passages) > 0

    def rows_where(self, sql: str, values: Sequence[str | int | float]) -> list[int]:
        """The rows for which an SQL expression is true, ascending."""
        self._file.whole()
        found = self._answer(f"SELECT row FROM documents WHERE {sql} ORDER BY row", *values)
        return [row for (row,) in found]

    def kinds(self, but: Integers) -> list[tuple[str, str]]:
        """Every metadata field with each type of JSON value that it has, by SQLite's name of the type.

        Rows in `but` are left out, here and below: those of deleted documents.
        """
        self._file.whole()
        fields = f"SELECT DISTINCT key, type FROM documents, json_each(metadata) {LEAVING_OUT}"
        return [(str(name), kind) for name, kind in self._answer(fields, _json(but))]

    def text_bytes(self, but: Integers) -> int:
        """Bytes of titles and texts in UTF-8."""
        self._file.whole()
        lengths = "length(CAST(title AS BLOB)) + length(CAST(text AS BLOB))"
        sql = f"SELECT coalesce(sum({lengths}), 0) FROM documents {LEAVING_OUT}"
        return self._answer(sql, _json(but))[0][0]

    def passages(self, but: Integers) -> list[tuple[str, str]]:
        """Id and parent of every passage."""
        if not self._has_passages:
            return []
        self._file.whole()
        sql = f"SELECT id, parent FROM documents {LEAVING_OUT} AND parent IS NOT NULL"
        return self._answer(sql, _json(but))

    def parents(self, but: Integers) -> tuple[int, int]:
        """Number of documents that were cut into passages, and number of their passages."""
        if not self._has_passages:
            return 0, 0
        self._file.whole()
        sql = f"SELECT count(DISTINCT parent), count(parent) FROM documents {LEAVING_OUT}"
        return tuple(self._answer(sql, _json(but))[0])

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every row with its number and all its columns, in order."""
        self._file.whole()
        for at in range(0, self._documents, TOGETHER):
            sql = f"SELECT row, {COLUMNS} FROM documents WHERE row >= ? AND row < ? ORDER BY row"
            yield from self._answer(sql, at, at + TOGETHER)

    def close(self) -> None:
        """Close the file; may be repeated."""
        self._closing()
        self._connection, self._known = None, {}

    def _having(self, columns: str, column: str, values: Sequence[str | int]) -> Iterator[Any]:
        """Some columns of the rows that have one of some values in a column."""
        for at in range(0, len(values), TOGETHER):
            some = values[at : at + TOGETHER]  # as parameters, as SQLite's JSON cuts strings at a NUL
            marks = ", ".join("?" * len(some))
            yield from self._answer(f"SELECT {columns} FROM documents WHERE {column} IN ({marks})", *some)

    def _without(self, row: int) -> ArtifactError:
        """Error for a missing row. The number of rows was right, so the file is damaged."""
        return ArtifactError(f"has no row {row}; {DAMAGED}", path=self._file.path)

    def _check(self, found: Collection[int], wanted: Sequence[int], checks: Sequence[int], kind: int) -> None:
        """Raise an error unless all wanted rows were found, with the checksums of a kind (0: id, 1: all)."""
        for row in wanted:
            if row not in found:
                raise self._without(row)
        stored = None if self._checks is None else self._checks[np.array(wanted, np.int64)][:, kind]
        if stored is not None and stored.tolist() != checks:
            raise ArtifactError(DAMAGED, path=self._file.path)

    def _answer(self, sql: str, *values: str | int | float) -> list[Any]:
        if self._connection is None:
            raise ArtifactError(
                "this index has been closed; open it again to search it", path=self._file.path.parent
            )
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> ArtifactError:
        return ArtifactError(
            f"cannot be read as a database ({error}); {REMEDY}",
            path=self._file.path,
        )


def _storable(document_id: str) -> bool:
    """Whether SQLite can store an id; it cannot store half a surrogate pair."""
    return document_id.isascii() or not any("\ud800" <= character <= "\udfff" for character in document_id)


def _document(name: str, title: str, text: str, parent: str | None, start: int, metadata: str) -> Document:
    return Document(name, text, title, parent, start, {} if metadata == "{}" else json.loads(metadata))


def _json(rows: Integers) -> str:
    return json.dumps(np.asarray(rows, np.int64).tolist())
