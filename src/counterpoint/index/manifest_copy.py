"""`manifest.copy.json`: what is wrong with it, and how it takes the place of a damaged manifest."""

from __future__ import annotations

from pathlib import Path

from counterpoint.errors import ArtifactError
from counterpoint.index.lock import locked
from counterpoint.index.manifest import COPY, NAME, Manifest, OtherVersion, write_bytes

__all__ = ["damaged_copy", "restore"]


def damaged_copy(folder: Path) -> bool:
    """Whether there is a copy that cannot be used.

    An index of an earlier version has no copy until its first change. A copy that differs from an intact
    manifest can be used: a writer was killed during its commit, and what the copy names is there.
    """
    try:
        Manifest.read(folder, COPY)
    except ArtifactError:
        return (folder / COPY).exists()
    return False


def restore(folder: Path) -> str | None:
    """Put the copy in the place of a damaged or lost manifest, or write a damaged copy again.

    Returns:
        The file that was damaged, by name; None where none is.

    Raises:
        ArtifactError: no index here, both files are damaged, another version reads it, or another process is
            writing the index.
    """
    if _damaged(folder) is None:  # before a lock is left in a folder that is no index
        return None
    with locked(folder):
        damaged = _damaged(folder)
        if damaged is not None:
            write_bytes(folder, (folder / (COPY if damaged == NAME else NAME)).read_bytes())
    return damaged


def _damaged(folder: Path) -> str | None:
    """Which of the two files is damaged.

    Raises:
        ArtifactError: both are.
    """
    try:
        Manifest.read(folder)
    except OtherVersion:
        raise
    except ArtifactError as error:
        try:
            Manifest.read(folder, COPY)
        except ArtifactError:
            raise error from None
        return NAME
    return COPY if damaged_copy(folder) else None
