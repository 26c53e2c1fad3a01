"""Writing so that a reader sees the old file or the new one, and never half of either."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from counterpoint.errors import ArtifactError

__all__ = [
    "check_replaceable",
    "publish_folder",
    "sha256_file",
    "sync_file",
    "sync_folder",
    "write_atomically",
    "writing",
]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an operating-system error while writing `path` into one that a user can act on."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtifactError(
            f"cannot write: {reason}. Nothing that was there before has been changed; "
            "free some space or choose a folder that you may write to.",
            path=error.filename or path,
        ) from error


def sync_file(path: Path) -> None:
    """Ask the operating system to put a file's bytes on the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make a folder's entries (creations, renames) durable, where the platform can."""
    if os.name == "nt":  # Windows has no handle on a folder to sync.
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one step.

    A link stays one: what it points at is replaced. A device or a pipe is written to.

    Raises:
        ArtifactError: the file could not be written; `path` is as it was.
    """
    with writing(path):
        if path.exists() and not path.is_file():  # /dev/null must not become a file
            write(path)
            return
        target = path.resolve()
        temporary = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            write(temporary)
            sync_file(temporary)
            os.replace(temporary, target)
            sync_folder(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


def check_replaceable(path: Path, known_by: str) -> None:
    """Refuse to replace a folder of another kind: `known_by` is a file that is in every folder of this one.

    Raises:
        ArtifactError: `path` is a file, or a folder with anything in it but without that file.
    """
    if not path.exists() or (path / known_by).exists():
        return
    if path.is_file():
        raise ArtifactError("is a file and is not replaced; choose another name", path=path)
    if other := min((entry.name for entry in path.iterdir()), default=None):
        raise ArtifactError(
            f"holds something else ({other!r}, and no {known_by}) and is not replaced; choose another name",
            path=path,
        )


@contextmanager
def publish_folder(path: Path, *, overwrite: bool = False, known_by: str | None = None) -> Iterator[Path]:
    """Yield an empty folder beside `path`; when the block ends well, it becomes `path`.

    Args:
        path: what it is called afterwards.
        overwrite: replace what is called so.
        known_by: a file that is in every folder of this kind; one that holds anything else stays.

    Raises:
        ArtifactError: `path` exists and `overwrite` is false or it is of another kind, or writing failed;
            `path` is as it was.
    """
    if path.exists() and not overwrite:
        raise ArtifactError("already exists; choose another name or ask to overwrite it", path=path)
    if known_by is not None:
        check_replaceable(path, known_by)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with writing(path):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    sync_file(file)
            previous = path.with_name(f".{path.name}.{os.getpid()}.previous")
            if path.exists():
                os.replace(path, previous)
            os.replace(temporary, path)
            sync_folder(path.parent)
            shutil.rmtree(previous, ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def sha256_file(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
