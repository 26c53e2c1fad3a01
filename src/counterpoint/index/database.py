"""The documents of a segment: a committed SQLite file, read only."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, final

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFile

__all__ = ["Database"]


@final
class Database:
    """Answers to SQL from a file that is compared with its checksum first.

    The first query checks the whole file. SQLite decides which pages it reads, and a damaged page can give a
    wrong text, or no row where there is one. The first search reads the whole table in any case, to learn
    which documents are passages, and that takes ten times as long.

    Args:
        file: with a table `documents` whose rows are numbered from 0.
        documents: how many there must be.

    Raises:
        ArtifactError: the file is damaged, or has another number of documents.
    """

    def __init__(self, file: CheckedFile, documents: int):
        self._file = file
        # immutable=1: no lock file and no journal next to a committed, read-only file.
        uri = f"{file.path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            self._connection: sqlite3.Connection | None = sqlite3.connect(
                uri, uri=True, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise _unreadable(file.path, error) from error
        # SQLite opens the file with the first query; after that a rebuild may delete it.
        found = self._answer("SELECT max(row) + 1 FROM documents")[0][0]
        if found != documents:
            self.close()
            raise ArtifactError(f"has {found} documents, the manifest says {documents}", path=file.path)

    def all(self, sql: str, *values: str | int) -> list[Any]:
        """All rows of an answer.

        Raises:
            ArtifactError: the file is damaged, or was closed.
        """
        self._file.whole()
        return self._answer(sql, *values)

    def one(self, sql: str, *values: str | int) -> Any:
        """The only row of an answer.

        Raises:
            ArtifactError: there is none, the file is damaged, or was closed.
        """
        found = self.all(sql, *values)
        if not found:
            raise ArtifactError(f"has no row {', '.join(map(str, values))}", path=self._file.path)
        return found[0]

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _answer(self, sql: str, *values: str | int) -> list[Any]:
        if self._connection is None:
            raise ArtifactError(
                "this index has been closed; open it again to search it", path=self._file.path.parent
            )
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise _unreadable(self._file.path, error) from error


def _unreadable(path: Path, error: sqlite3.Error) -> ArtifactError:
    return ArtifactError(
        f"cannot be read as a database ({error}); copy the index again or build it again",
        path=path,
    )
