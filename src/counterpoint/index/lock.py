"""One writer at a time: the lock of an index. A file system without locks is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from counterpoint.index.ours import LOCK
from counterpoint.locks import locked as locked_by

__all__ = ["locked"]

BUSY = "another process is writing this index; wait for it to end"
WITHOUT = (
    "its file system has no locks ({reason}), so two writers could destroy each other's work; nothing was "
    "changed. Copy the index to a local disk, change it there and copy it back"
)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock an index for one writer, among all threads and processes.

    Raises:
        ArtifactError: another process or thread is writing it, its folder cannot be written, or its file
            system has no locks.
    """
    with locked_by(folder / LOCK, BUSY, WITHOUT):
        yield
