"""The last step before a commit: checksum, sync and list the new folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from counterpoint.files import sync_all
from counterpoint.index.checked import write_blocks
from counterpoint.index.manifest import FileEntry
from counterpoint.index.ours import is_of_index, made

__all__ = ["sealed"]


def sealed(folder: Path, names: Sequence[str]) -> dict[str, FileEntry]:
    """Sync the files of new folders to disk; return sizes and checksums by path, for the manifest.

    The files must not change afterwards.
    """
    roots = [folder / name for name in names]
    for root in roots:
        if root.parent.name != "models":  # a model has checksums of its own
            write_blocks(root, filter(is_of_index, made(root)))
    paths = sorted(path for root in roots for path in root.rglob("*") if is_of_index(path))
    sync_all([*paths, *roots])
    return {path.relative_to(folder).as_posix(): FileEntry.of(path) for path in paths}
