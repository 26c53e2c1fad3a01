"""Write files atomically: a reader sees the old file or the new one, never a part of either."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from counterpoint.errors import ArtifactError

try:  # missing on Windows, where leftovers of killed processes stay until the user deletes them
    import fcntl
except ImportError:
    fcntl = None

__all__ = [
    "held",
    "is_abandoned",
    "sha256_file",
    "sync_all",
    "sync_file",
    "sync_folder",
    "temporaries_of",
    "temporary_next_to",
    "write_atomically",
    "writing",
]

REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some disk space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose a place that you may write to"),
    errno.EIO: "check the disk",
    errno.ENAMETOOLONG: "choose a shorter name",
}

TOGETHER = 8  # files synced at once


@contextmanager
def writing(path: Path, replaced: Callable[[], bool] | None = None) -> Iterator[None]:
    """Turn an operating-system error while writing `path` into one that a user can act on.

    Args:
        path: the file or folder that is written.
        replaced: checks on disk whether the new version is already in place. The message says so, and an
            interrupt carries the same text as a note. Without it, the message does not mention the state.

    Raises:
        ArtifactError: writing failed; says why, what is on disk now, and a remedy.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = REMEDIES.get(error.errno or 0)
        now = None if replaced is None else _asked(replaced)
        if now:
            message = f"{reason}. The new version is in place, but a power failure may bring the old one back"
        else:
            message = f"cannot write: {reason}" + ("" if replaced is None else f"; {_state(now)}")
        where = path if replaced else error.filename or path  # not the name of a temporary file
        raise ArtifactError(message + (f". To continue, {remedy}" if remedy else ""), path=where) from error
    except KeyboardInterrupt as interrupt:
        if replaced is not None:
            interrupt.add_note(f"{path}: {_state(_asked(replaced))}")
        raise


def _asked(replaced: Callable[[], bool]) -> bool | None:
    """Whether the new version is in place; None if that cannot be checked."""
    try:
        return replaced()
    except (OSError, ArtifactError):
        return None


def _state(replaced: bool | None) -> str:
    if replaced is None:
        return "could not check whether the new version is in place"
    return "the new version is in place" if replaced else "existing files are unchanged"


def sync_file(path: Path) -> None:
    """Ask the operating system to write a file's bytes to disk."""
    with open(path, "r+b") as file:  # Windows syncs only files opened for writing
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make a folder's entries (creations, renames) durable, if the platform supports it."""
    if os.name == "nt":  # Windows has no handle on a folder to sync
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(paths: Iterable[Path]) -> None:
    """Sync files and the entries of folders, several at once, which a file system can combine.

    22 files took a tenth of the time that they took one after another.
    """
    from concurrent.futures import ThreadPoolExecutor  # not imported to search

    with ThreadPoolExecutor(TOGETHER) as threads:
        for _ in threads.map(lambda path: (sync_folder if path.is_dir() else sync_file)(path), paths):
            pass  # raises the errors of the threads


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file next to `path`, then move it in place in one step.

    If `path` is a link, its target is replaced. A device or a pipe is written to directly.

    Raises:
        ArtifactError: the file could not be written; the message says whether the old or the new one exists.
    """
    if path.exists() and not path.is_file():  # /dev/null must not become a file
        with writing(path):
            write(path)
        return
    target = Path(os.path.realpath(path))  # `resolve` raises on a loop of links
    temporary = temporary_next_to(target)
    written: list[int] = []  # the inode of the new file, once it is complete
    with writing(path, lambda: target.exists() and written == [_inode(target)]):
        try:
            _remove_abandoned(target)
            with held(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR):
                write(temporary)
                sync_file(temporary)
                written.append(_inode(temporary))
                if fcntl is not None:
                    os.replace(temporary, target)
            if fcntl is None:  # Windows cannot rename an open file
                os.replace(temporary, target)
            sync_folder(target.parent)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def temporary_next_to(target: Path, kind: str = "partial") -> Path:
    """An unused name next to `target`: `.NAME.XXXXXXXX.KIND`."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.{kind}")


def temporaries_of(target: Path, kind: str = "partial") -> list[Path]:
    """Existing files that `temporary_next_to` named for a target; no other names match."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.{kind}")
    return [path for path in target.parent.iterdir() if ours.fullmatch(path.name)]


@contextmanager
def held(path: Path, flags: int = os.O_RDONLY) -> Iterator[None]:
    """Lock a file or folder while the block runs; the system unlocks it when the process ends.

    Raises:
        OSError: it cannot be opened.
    """
    if fcntl is None and path.is_dir():
        yield
        return
    descriptor = os.open(path, flags, 0o666)
    try:
        if fcntl is not None:
            with suppress(OSError):  # on a file system without locks, nothing counts as abandoned
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def is_abandoned(path: Path) -> bool:
    """Whether the process that held a temporary file or folder has ended. False if that is not known."""
    if fcntl is None or path.is_symlink():
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _remove_abandoned(target: Path) -> None:
    with suppress(OSError):  # leftovers take space but do no harm
        for path in temporaries_of(target):
            if is_abandoned(path):
                path.unlink()


def _inode(path: Path) -> int:
    return path.stat().st_ino


def sha256_file(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
