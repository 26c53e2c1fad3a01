"""One writer at a time: the lock of an index.

The operating system holds the lock (`flock`) and releases it when the process ends, however it ends. The file
stays, else two writers could hold different locks. A file system without locks is refused. A lock file that
merely says "locked" would outlive a killed writer.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from counterpoint.errors import ArtifactError
from counterpoint.files import writing
from counterpoint.index.ours import LOCK

__all__ = ["locked"]

NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock an index for one writer, among all threads and processes.

    Raises:
        ArtifactError: another process or thread is writing it, its folder cannot be written, or its file
            system has no locks.
    """
    from filelock import FileLock, Timeout  # imports asyncio, which a search does not need

    lock = FileLock(folder / LOCK, blocking=False, fallback_to_soft=False)
    with writing(folder):
        try:
            lock.acquire()
        except Timeout as error:
            raise ArtifactError(
                "another process is writing this index; wait for it to end", path=folder
            ) from error
        except (OSError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno not in NO_LOCKS:
                raise
            reason = getattr(error, "strerror", None) or "not implemented"
            raise ArtifactError(
                f"its file system has no locks ({reason}), so two writers could destroy each other's "
                "work; nothing was changed. Copy the index to a local disk, change it there and copy it back",
                path=folder,
            ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # the lock ends with the process anyway
            lock.release()
