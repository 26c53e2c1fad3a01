"""Steps that all changes of an index share: lock, write, commit a new manifest, clean up."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from counterpoint.errors import ArtifactError
from counterpoint.files import sync_all, writing
from counterpoint.index.checked import write_blocks
from counterpoint.index.database import as_os_error
from counterpoint.index.index import Index
from counterpoint.index.lock import locked
from counterpoint.index.manifest import NAME, FileEntry, Manifest, SegmentEntry
from counterpoint.index.ours import is_of_index, made, remove_unfinished, unfinished_segment
from counterpoint.version import version

__all__ = ["commit", "exclusively", "holding", "sealed", "telling"]

REPLACED = "another process replaced this index meanwhile; nothing was changed. Repeat this on the new one"

H = TypeVar("H", Index, Manifest)


@contextmanager
def exclusively(index: Index) -> Iterator[Index]:
    """Lock an index for one writer; yield its current state.

    What a killed writer left is removed first. Afterwards everything that the last commit does not name is
    removed. An unfinished build that can be resumed stays.

    Raises:
        ArtifactError: another process is writing the index, or it cannot be written.
    """
    with _held(index.folder, index.refreshed) as now:
        yield now


@contextmanager
def holding(folder: Path) -> Iterator[Manifest]:
    """The same for an index that may be too damaged to open; yield its manifest."""
    with _held(folder, partial(Manifest.read, folder)) as now, telling(folder, now):
        yield now


@contextmanager
def _held(folder: Path, read: Callable[[], H]) -> Iterator[H]:
    if not (folder / NAME).exists():  # raise before leaving a lock file in a folder that is not an index
        Manifest.read(folder)
    with locked(folder):
        with writing(folder):  # somebody may remove the index meanwhile
            now = read()
            manifest = now if isinstance(now, Manifest) else now.manifest
            unfinished = unfinished_segment(folder, manifest)
        kept = None if unfinished is None else unfinished[0]
        remove_unfinished(folder, kept, manifest)
        try:
            yield now
        except BaseException:
            with suppress(OSError, ArtifactError):
                # A power failure may undo a commit whose last sync failed, so the old files stay.
                if Manifest.read(folder) == manifest:
                    remove_unfinished(folder, kept, manifest, settled=True)
            raise
        remove_unfinished(folder, kept, settled=True)


@contextmanager
def telling(folder: Path, manifest: Manifest) -> Iterator[None]:
    """Turn a disk error during a write into one that says what became of the index with this manifest.

    Raises:
        ArtifactError: the disk failed.
    """
    with writing(folder, lambda: Manifest.read(folder) != manifest):
        try:
            yield
        except sqlite3.OperationalError as error:
            raise as_os_error(error) from error


def commit(folder: Path, manifest: Manifest, segments: Sequence[SegmentEntry], longer: int = 0) -> None:
    """Replace an index's manifest by one with these segments.

    Args:
        folder: of the index, locked by the caller.
        manifest: its current state.
        segments: in the order of their documents. Those without a live document are left out, unless there
            are no others.
        longer: number of new documents with more word-pieces than the model reads.

    Raises:
        ArtifactError: the index on disk is no longer the one that `manifest` describes.
    """
    kept = [entry for entry in segments if entry.live] or list(segments[-1:])
    before = {name for entry in manifest.segments for name in entry.folders()}
    named = dict.fromkeys(name for entry in kept for name in entry.folders())
    files = {
        path: found
        for path, found in manifest.files.items()
        if path.startswith("models/") or path.rpartition("/")[0] in named
    }
    files |= sealed(folder, [name for name in named if name not in before])
    report = dict(manifest.report)
    if "longer" in report:
        report["longer"] += longer
    # A removed folder takes the lock's file with it, and then another process may have built an index here.
    now = Manifest.read(folder)
    if (now.segments, now.files) != (manifest.segments, manifest.files):
        raise ArtifactError(REPLACED, path=folder)
    replace(
        manifest,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        software=version(),
        segments=tuple(kept),
        files=files,
        report=report,
    ).write(folder)


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
