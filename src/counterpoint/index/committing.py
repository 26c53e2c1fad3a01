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
from counterpoint.files import writing
from counterpoint.index.database import as_os_error
from counterpoint.index.index import Index
from counterpoint.index.lock import locked
from counterpoint.index.manifest import NAME, Manifest, SegmentEntry
from counterpoint.index.ours import remove_unfinished, unfinished_segment
from counterpoint.index.sealing import sealed
from counterpoint.version import version

__all__ = ["commit", "commit_segments", "exclusively", "holding", "telling"]

H = TypeVar("H", Index, Manifest)


@contextmanager
def exclusively(index: Index) -> Iterator[Index]:
    """Lock an index for one writer; yield its current state.

    What a killed writer left is removed first. Afterwards everything that the last commit does not name is
    removed. An unfinished build that can be resumed stays.

    Args:
        index: any snapshot of it.

    Raises:
        ArtifactError: another process is writing the index, or it cannot be written.
    """
    with _held(index.folder, index.refreshed) as now:
        yield now


@contextmanager
def holding(folder: Path) -> Iterator[Manifest]:
    """The same for an index that may be too damaged to open; yield its manifest."""
    with _held(folder, partial(Manifest.read, folder)) as now, _telling(folder, now):
        yield now


@contextmanager
def _held(folder: Path, read: Callable[[], H]) -> Iterator[H]:
    if not (folder / NAME).exists():  # raise before leaving a lock file in a folder that is not an index
        Manifest.read(folder)
    with locked(folder):
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
def telling(index: Index) -> Iterator[None]:
    """Turn a disk error during a write into an error that says what became of the index.

    Args:
        index: its state before the write.

    Raises:
        ArtifactError: the disk failed.
    """
    with _telling(index.folder, index.manifest):
        yield


@contextmanager
def _telling(folder: Path, manifest: Manifest) -> Iterator[None]:
    with writing(folder, lambda: Manifest.read(folder) != manifest):
        try:
            yield
        except sqlite3.OperationalError as error:
            raise as_os_error(error) from error


def commit(index: Index, segments: Sequence[SegmentEntry], new: Sequence[str], longer: int = 0) -> None:
    """Replace an index's manifest by one with these segments.

    Args:
        index: its current state, locked by `exclusively`.
        segments: in the order of their documents. Those without a live document are left out, unless there
            are no others.
        new: folders that were made for them.
        longer: number of new documents with more word-pieces than the model reads.
    """
    commit_segments(index.folder, index.manifest, segments, new, longer)


def commit_segments(
    folder: Path, manifest: Manifest, segments: Sequence[SegmentEntry], new: Sequence[str], longer: int = 0
) -> None:
    """The same for an index of which only the manifest was read."""
    kept = [entry for entry in segments if entry.live] or list(segments[-1:])
    named = {name for entry in kept for name in entry.folders()}
    files = {
        path: found
        for path, found in manifest.files.items()
        if path.startswith("models/") or path.rpartition("/")[0] in named
    }
    files |= sealed(folder, [name for name in new if name in named])
    report = dict(manifest.report)
    if "longer" in report:
        report["longer"] += longer
    replace(
        manifest,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        software=version(),
        segments=tuple(kept),
        files=files,
        report=report,
    ).write(folder)
