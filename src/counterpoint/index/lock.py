"""One writer at a time: the lock of an index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from counterpoint.errors import ArtifactError
from counterpoint.files import writing
from counterpoint.index.ours import LOCK

__all__ = ["locked"]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the one that writes an index.

    Raises:
        ArtifactError: another process is writing it, or its folder cannot be written.
    """
    from filelock import FileLock, Timeout  # brings asyncio with it, for which a search has no use

    lock = FileLock(folder / LOCK, blocking=False)
    with writing(folder):
        try:
            lock.acquire()
        except Timeout as error:
            raise ArtifactError(
                "another process is writing this index; wait for it to end", path=folder
            ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # the empty file stays: without it two writers could hold different locks
            lock.release()
