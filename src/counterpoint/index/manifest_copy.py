"""`manifest.copy.json`: check it, and restore a damaged manifest from it."""

from __future__ import annotations

from pathlib import Path

from counterpoint.errors import ArtifactError
from counterpoint.index.lock import locked
from counterpoint.index.manifest import COPY, NAME, Manifest, OtherVersion, write_bytes

__all__ = ["damaged_copy", "restore"]


def damaged_copy(folder: Path) -> bool:
    """Whether there is a copy that is damaged.

    An index of an earlier version has no copy until its first change. A copy that differs from an intact
    manifest is usable: a writer was killed during its commit, and all files that the copy names exist.
    """
    try:
        Manifest.read(folder, COPY)
    except ArtifactError:
        return (folder / COPY).exists()
    return False


def restore(folder: Path) -> str | None:
    """Replace a damaged or missing manifest by its copy, or rewrite a damaged copy.

    Returns:
        Name of the damaged file; None if none is.

    Raises:
        ArtifactError: there is no index, both files are damaged, another version is needed to read it, or
            another process is writing the index.
    """
    if _damaged(folder) is None:  # raises before a lock file is left in a folder that is not an index
        return None
    with locked(folder):
        damaged = _damaged(folder)
        if damaged is not None:
            write_bytes(folder, (folder / (COPY if damaged == NAME else NAME)).read_bytes())
    return damaged


def _damaged(folder: Path) -> str | None:
    """Name of the damaged file of the two, or None; an error if both are damaged."""
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
