"""The last step before a commit: new folders get their checksums, reach the disk, and are listed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from counterpoint.files import sync_all
from counterpoint.index.checked import write_blocks
from counterpoint.index.manifest import FileEntry
from counterpoint.index.ours import is_of_index, made

__all__ = ["sealed"]


def sealed(folder: Path, names: Sequence[str]) -> dict[str, FileEntry]:
    """Put the files of new folders of an index on the disk; sizes and checksums by path, for the manifest.

    They must not change afterwards.
    """
    roots = [folder / name for name in names]
    for root in roots:
        if root.parent.name != "models":  # a model has checksums of its own
            write_blocks(root, filter(is_of_index, made(root)))
    paths = sorted(path for root in roots for path in root.rglob("*") if is_of_index(path))
    sync_all([*paths, *roots])
    return {path.relative_to(folder).as_posix(): FileEntry.of(path) for path in paths}
