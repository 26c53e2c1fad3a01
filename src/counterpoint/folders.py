"""Replace folders safely: the old or the new one exists at every moment, and no other file is lost."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from counterpoint.errors import ArtifactError
from counterpoint.files import (
    held,
    is_abandoned,
    sync_file,
    sync_folder,
    temporaries_of,
    temporary_next_to,
    writing,
)

__all__ = [
    "SAVED_PART",
    "FolderKind",
    "check_replaceable",
    "publish_folder",
    "remove_made",
    "sync_tree",
    "whole_folder",
]

AT_FDCWD, RENAME_EXCHANGE, RENAME_SWAP = -100, 2, 2
CANNOT_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class FolderKind:
    """Files in folders of one kind. A folder with any other file is not replaced.

    Attributes:
        known_by: a file in each of these folders, which marks it as ours.
        names: patterns of the paths of all files that we write there; `*` also matches folders.
    """

    known_by: str
    names: tuple[str, ...]


SAVED_PART = FolderKind("part.toml", ("weights.safetensors", "assets/*"))
"""Files in the folder of a saved part (a model, a scorer)."""


def check_replaceable(path: Path, kind: FolderKind | None) -> None:
    """Refuse to replace a file, a folder of another kind, or a folder with a file that we did not write.

    Raises:
        ArtifactError: the path cannot be replaced; names the file in question.
    """
    if path.is_file():
        raise ArtifactError("is a file and is not replaced; choose another name", path=path)
    found = sorted(file.relative_to(path).as_posix() for file in _files(path))
    if not found:
        return
    if kind is None or kind.known_by not in found:
        lacks = "" if kind is None else f", and no {kind.known_by}"
        raise ArtifactError(
            f"has other contents ({found[0]!r}{lacks}) and is not replaced; choose another name", path=path
        )
    foreign = next((name for name in found if not _matches(name, (kind.known_by, *kind.names))), None)
    if foreign is not None:
        raise ArtifactError(
            f"contains {foreign!r}, which would be lost; move it away or choose another name", path=path
        )


@contextmanager
def publish_folder(path: Path, *, overwrite: bool = False, kind: FolderKind | None = None) -> Iterator[Path]:
    """Yield an empty folder next to `path`; when the block ends without an error, it becomes `path`.

    Leftovers of killed processes are cleaned up first: an old version that was moved aside is moved back, and
    an unfinished new one is removed. If `path` is a link, its target is replaced.

    Args:
        path: the name of the folder afterwards.
        overwrite: replace a folder of this kind.
        kind: the files of such a folder; without it, only an empty folder is replaced.

    Raises:
        ArtifactError: `path` exists, and `overwrite` is false or it has other contents; or writing failed.
            The message says whether the old or the new folder exists.
    """
    target = Path(os.path.realpath(path))  # `resolve` raises on a loop of links
    inodes: list[int] = []  # of the new folder, once it is complete

    def replaced() -> bool:
        return target.exists() and inodes == [target.stat().st_ino]

    with writing(path, replaced):
        _recover(target)
        if path.exists() and not overwrite:
            message = "already exists; choose another name, or replace it with --overwrite (overwrite=True)"
            raise ArtifactError(message, path=path)
        check_replaceable(path, kind)
        temporary = temporary_next_to(target)
        above = _make(temporary)
        try:
            with held(temporary):
                yield temporary
                sync_tree(temporary)
                inodes.append(temporary.stat().st_ino)
                if overwrite:
                    check_replaceable(path, kind)  # again: writing may have taken hours
                    _put_in_place(temporary, target)
                else:
                    os.rename(temporary, target)  # fails if another process was faster
                for folder in above:
                    sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                if not replaced():  # else it is the old one, which a power failure may restore
                    shutil.rmtree(temporary)
            raise
        shutil.rmtree(temporary, ignore_errors=True)  # the old one, if both were exchanged


def whole_folder(path: Path) -> Path:
    """The location of folder `path`: itself, or where a killed process moved it during a replacement."""
    if path.exists() or not path.parent.is_dir():
        return path
    return next(iter(temporaries_of(path, "previous")), path)


def remove_made(folder: Path, names: tuple[str, ...]) -> None:
    """Remove files directly in a folder that match `names`, then the folder if it is empty.

    Links are neither followed nor removed. What cannot be removed stays; it takes space but does no harm.
    """
    if folder.is_symlink():
        return
    with suppress(OSError):
        for path in folder.iterdir():
            if _matches(path.name, names) and path.is_file() and not path.is_symlink():
                with suppress(OSError):
                    path.unlink()
        folder.rmdir()


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder; links to folders are listed, not followed."""
    for where, folders, files in os.walk(folder):
        yield from (Path(where, name) for name in files)
        yield from (path for name in folders if (path := Path(where, name)).is_symlink())


def _make(folder: Path) -> list[Path]:
    """Make a folder and its parents; return the folders that got new entries, innermost first."""
    above = [folder.parent]
    while not above[-1].exists():
        above.append(above[-1].parent)
    folder.mkdir(parents=True)
    return above


def sync_tree(folder: Path) -> None:
    """Sync a folder and everything below it to disk."""
    for where, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync_file(Path(where, name))
        sync_folder(Path(where))


def _put_in_place(new: Path, path: Path) -> None:
    """Give a folder the name `path`; the folder that had it is called `new` afterwards, or is removed."""
    if not path.exists():
        os.rename(new, path)
        return
    if _exchange(new, path):
        return
    previous = temporary_next_to(path, "previous")
    os.rename(path, previous)
    try:
        os.rename(new, path)
    except BaseException:
        os.rename(previous, path)
        raise
    sync_folder(path.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False if the system or the file system does not support it.

    Raises:
        OSError: it is supported but failed.
    """
    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        failed = library.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE)
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, RENAME_SWAP)
    else:
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in CANNOT_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _recover(path: Path) -> None:
    if not path.parent.is_dir():
        return
    for previous in temporaries_of(path, "previous"):
        if not path.exists():
            os.rename(previous, path)
        elif path.is_dir():
            shutil.rmtree(previous, ignore_errors=True)
    for partial in temporaries_of(path):
        if partial.is_dir() and is_abandoned(partial):
            shutil.rmtree(partial, ignore_errors=True)
