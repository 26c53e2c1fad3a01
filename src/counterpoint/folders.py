"""Replacing a folder: the old one or the new one is there at every instant, and no other file is lost."""

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
    temporary_beside,
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
    """What folders of one kind hold. One that holds anything else is not replaced.

    Attributes:
        known_by: a file that is in each of them, by which it counts as ours.
        names: patterns of the paths of all files that we write there; `*` matches folders, too.
    """

    known_by: str
    names: tuple[str, ...]


SAVED_PART = FolderKind("part.toml", ("weights.safetensors", "assets/*"))
"""What the folder of a saved part (a model, a scorer) holds."""


def check_replaceable(path: Path, kind: FolderKind | None) -> None:
    """Refuse to replace a file, a folder of another kind, or one that holds a file that we did not write.

    Raises:
        ArtifactError: naming that file.
    """
    if path.is_file():
        raise ArtifactError("is a file and is not replaced; choose another name", path=path)
    found = sorted(file.relative_to(path).as_posix() for file in _files(path))
    if not found:
        return
    if kind is None or kind.known_by not in found:
        lacks = "" if kind is None else f", and no {kind.known_by}"
        raise ArtifactError(
            f"holds something else ({found[0]!r}{lacks}) and is not replaced; choose another name", path=path
        )
    foreign = next((name for name in found if not _matches(name, (kind.known_by, *kind.names))), None)
    if foreign is not None:
        raise ArtifactError(
            f"holds {foreign!r}, which would be lost; move it away or choose another name", path=path
        )


@contextmanager
def publish_folder(path: Path, *, overwrite: bool = False, kind: FolderKind | None = None) -> Iterator[Path]:
    """Yield an empty folder next to `path`; when the block ends well, it becomes `path`.

    What killed processes left behind is put right first: an old version that was moved aside is moved back,
    a new one that was not finished is removed. A link stays one: what it points at is replaced.

    Args:
        path: what it is called afterwards.
        overwrite: replace a folder of this kind.
        kind: what such a folder holds; without it only an empty folder is replaced.

    Raises:
        ArtifactError: `path` exists and `overwrite` is false or it holds anything else, or writing failed;
            the message says whether the old or the new folder is there.
    """
    target = Path(os.path.realpath(path))  # `resolve` raises where links go round in a circle
    inodes: list[int] = []  # of the new folder, once it is whole

    def replaced() -> bool:
        return target.exists() and inodes == [target.stat().st_ino]

    with writing(path, replaced):
        _recover(target)
        if path.exists() and not overwrite:
            raise ArtifactError("already exists; choose another name or ask to overwrite it", path=path)
        check_replaceable(path, kind)
        temporary = temporary_beside(target)
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
                    os.rename(temporary, target)  # fails if another process has been faster
                for folder in above:
                    sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                if not replaced():  # else this is the old one, which a power failure may bring back
                    shutil.rmtree(temporary)
            raise
        shutil.rmtree(temporary, ignore_errors=True)  # the old one, where both were exchanged


def whole_folder(path: Path) -> Path:
    """Where the folder `path` is: there, or where a killed process left it while it replaced it."""
    if path.exists() or not path.parent.is_dir():
        return path
    return next(iter(temporaries_of(path, "previous")), path)


def remove_made(folder: Path, names: tuple[str, ...]) -> None:
    """Remove the files directly in a folder that match `names`, then the folder if that leaves it empty.

    Links are neither followed nor removed, and what cannot be removed stays: it takes room and does no harm.
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
    """Everything below a folder but folders; a link to one is not followed."""
    for where, folders, files in os.walk(folder):
        yield from (Path(where, name) for name in files)
        yield from (path for name in folders if (path := Path(where, name)).is_symlink())


def _make(folder: Path) -> list[Path]:
    """Make a folder and those above it; the folders whose entries are new by that, innermost first."""
    above = [folder.parent]
    while not above[-1].exists():
        above.append(above[-1].parent)
    folder.mkdir(parents=True)
    return above


def sync_tree(folder: Path) -> None:
    """Put a folder and everything below it on the disk."""
    for where, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync_file(Path(where, name))
        sync_folder(Path(where))


def _put_in_place(new: Path, path: Path) -> None:
    """Give a folder the name `path`; the one that had it is called `new` afterwards, or is gone."""
    if not path.exists():
        os.rename(new, path)
        return
    if _exchange(new, path):
        return
    previous = temporary_beside(path, "previous")
    os.rename(path, previous)
    try:
        os.rename(new, path)
    except BaseException:
        os.rename(previous, path)
        raise
    sync_folder(path.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in a single step; False where the system or the file system cannot.

    Raises:
        OSError: it can, and failed.
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
    """Put right what processes left that were killed while they published `path`."""
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
