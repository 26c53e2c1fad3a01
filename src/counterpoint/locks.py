"""One process at a time in a folder: a lock that the operating system holds (`flock`).

It is released when the process ends, however it ends. A file that merely says "locked" would outlive a killed
process. The file of the lock stays, else two processes could hold different locks.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from counterpoint.errors import ArtifactError
from counterpoint.files import writing

__all__ = ["locked"]

NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)


@contextmanager
def locked(path: Path, busy: str, without: str | None = None) -> Iterator[None]:
    """Lock a folder for a block, among all threads and processes.

    Args:
        path: the file of the lock, in that folder.
        busy: what to say if another process or thread has the lock.
        without: what to say if the file system has no locks, with a place for the `{reason}`; None to go on
            without one, with a warning.

    Raises:
        ArtifactError: another process or thread has the lock, the folder cannot be written, or its file
            system has no locks.
    """
    from filelock import FileLock, Timeout  # imports asyncio, which a search does not need

    lock = FileLock(path, blocking=False, fallback_to_soft=False)
    with writing(path.parent):
        try:
            lock.acquire()
        except Timeout as error:
            raise ArtifactError(busy, path=path.parent) from error
        except (OSError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno not in NO_LOCKS:
                raise
            reason = getattr(error, "strerror", None) or "not implemented"
            if without is not None:
                raise ArtifactError(without.format(reason=reason), path=path.parent) from error
            logging.getLogger(__name__).warning(
                "%s: this file system has no locks (%s); let no other process write here", path.parent, reason
            )
    try:
        yield
    finally:
        with suppress(OSError):  # the lock ends with the process anyway
            lock.release()
