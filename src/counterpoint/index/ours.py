"""What belongs to an index in its folder: nothing else is ever removed."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from counterpoint.errors import ArtifactError
from counterpoint.files import is_abandoned, sync_all, sync_folder, temporaries_of
from counterpoint.folders import SAVED_PART, check_replaceable, remove_made
from counterpoint.index.manifest import COPY, NAME, SHARDS, Manifest, write_bytes
from counterpoint.index.progress import TEMPORARY, Progress

__all__ = [
    "LOCK",
    "MARKER",
    "MODEL",
    "check_ours",
    "is_of_index",
    "made",
    "mark",
    "new_name",
    "remove",
    "remove_index",
    "remove_temporary",
    "remove_unfinished",
    "settle",
    "stored",
    "unfinished_segment",
]

LOCK = ".lock"
STORES = ("segments", "lexical", "deletes", "models")
STORED = re.compile(rf"({SHARDS}/\d{{5}}/)?({'|'.join(STORES)})/[^/]+")
"""A folder of one of the stores, relative to the index."""
MARKER = ".counterpoint"
"""The first file in a segment or postings folder. Only folders with it are ever removed."""
MADE = (
    "documents.sqlite",
    "documents.sqlite-journal",
    "*.npy",
    "*.json",
    "*.hnsw",
    "*.onnx",
    "*.safetensors",
    *TEMPORARY,
)
"""Names of our files in a segment or postings folder; no other file is ever removed."""
MODEL = "model"
"""The saved model in a folder of the store `models`."""


def new_name() -> str:
    """A random name for a new folder of an index."""
    return uuid.uuid4().hex[:12]


def remove_index(folder: str | Path) -> None:
    """Remove an index, finished or not, and nothing else in its folder."""
    folder = Path(folder)
    with suppress(OSError):
        for path in [folder / COPY, folder / NAME, *_uncommitted(folder)]:
            path.unlink(missing_ok=True)
        remove(stored(folder))
        for home in [folder, *_shards(folder)]:
            for store in STORES:
                remove_made(home / store, ())
        for home in _shards(folder):
            remove_made(home, ())
        remove_made(folder / SHARDS, ())
        remove_made(folder, (LOCK,))


def check_ours(folder: Path) -> None:
    """Check that a folder holds nothing but an index, wherever we delete.

    Raises:
        ArtifactError: naming the first foreign file or link.
    """
    there = stored(folder)
    homes = [folder / SHARDS, *_shards(folder)]
    stores = [home / store for home in homes[1:] for store in STORES]
    for path in (*(folder / name for name in (NAME, COPY, LOCK, *STORES)), *homes, *stores, *there):
        if path.is_symlink():
            name = path.relative_to(folder).as_posix()
            raise ArtifactError(f"{name!r} is a link; an index is not written through links", path=folder)
    ours = (NAME, COPY, LOCK, SHARDS, *STORES, *(path.name for path in _uncommitted(folder)))
    foreign = [path for path in folder.iterdir() if path.name not in ours]
    foreign += [path for path in (folder / SHARDS).glob("*") if path not in homes]
    foreign += [path for home in homes[1:] for path in home.iterdir() if path.name not in STORES]
    foreign += [path for path in there if not _is_ours(path)]
    if foreign:
        name = min(path.relative_to(folder).as_posix() for path in foreign)
        raise ArtifactError(
            f"holds something that is not an index ({name!r}); choose a new folder", path=folder
        )


def stored(folder: Path) -> list[Path]:
    """The folders of segments, postings, deletes and models."""
    return [path for home in (folder, *_shards(folder)) for name in STORES for path in home.glob(f"{name}/*")]


def _shards(folder: Path) -> list[Path]:
    found = sorted((folder / SHARDS).glob("*"))
    return [path for path in found if re.fullmatch(r"\d{5}", path.name) and path.is_dir()]


def _segments(folder: Path) -> list[Path]:
    return [path for path in stored(folder) if path.parent.name == "segments"]


def _uncommitted(folder: Path) -> list[Path]:
    """Manifests of writers that were killed during the commit itself, each once."""
    if not folder.is_dir():
        return []
    before = re.compile(rf"\.{re.escape(NAME)}\.\d+\.partial")  # as earlier versions named them
    found = [path for path in folder.iterdir() if before.fullmatch(path.name)]
    # A name of today whose eight hexadecimal digits have no letter is one of both.
    return list(dict.fromkeys([*found, *temporaries_of(folder / NAME), *temporaries_of(folder / COPY)]))


def _is_ours(path: Path) -> bool:
    """Whether a folder of an index was made by us.

    Earlier versions wrote no marker. Their folders are recognised by name and by a file that each has.
    """
    if not re.fullmatch("[0-9a-f]{12}", path.name) or path.is_symlink() or not path.is_dir():
        return False
    names = {found.name for found in path.iterdir()}
    return not names or bool(names & {MARKER, "documents.sqlite", "params.index.json"})


def _remove_model(path: Path) -> None:
    """Remove the model saved in an index, unless somebody added other files to it."""
    for partial in temporaries_of(path):
        if partial.is_dir() and is_abandoned(partial):
            shutil.rmtree(partial, ignore_errors=True)
    if path.is_dir() and not path.is_symlink():
        with suppress(ArtifactError):
            check_replaceable(path, SAVED_PART)
            for found in sorted(path.iterdir(), key=lambda found: found.name == SAVED_PART.known_by):
                if found.name == SAVED_PART.known_by:  # last, even if the power fails: it marks the folder
                    sync_folder(path)
                if found.is_dir() and not found.is_symlink():
                    shutil.rmtree(found)
                else:
                    found.unlink()
            path.rmdir()


def mark(*paths: Path) -> None:
    """Make folders with a marker that says they are ours, and sync them."""
    above = [place for path in paths for place in (path, *list(path.parents)[:3])]  # the last has the index
    fresh = [each for path in paths for each in path.parents if not each.exists()]  # the deepest first
    above += [each.parent for each in fresh]
    for path in paths:
        path.mkdir(parents=True)
    try:
        for path in paths:
            (path / MARKER).touch()
        sync_all(dict.fromkeys([*(path / MARKER for path in paths), *above]))
    except OSError:  # another sync does not restore a folder that a failed sync has lost
        for path in paths:
            remove_made(path, (MARKER,))
            remove_made(path.parent, ())
        for each in fresh:
            remove_made(each, ())
        raise


def made(folder: Path) -> list[Path]:
    """Our files directly in a segment or postings folder, without the marker."""
    return [path for path in folder.iterdir() if path.is_file() and _matches(path, MADE)]


def is_of_index(path: Path) -> bool:
    """Whether a file below a segment, postings or models folder is part of the index."""
    return path.is_file() and path.name != MARKER and not _matches(path, TEMPORARY)


def _matches(path: Path, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path.name, pattern) for pattern in patterns)


def unfinished_segment(folder: Path, manifest: Manifest | None = None) -> tuple[Path, Progress] | None:
    """The segment of an interrupted build that can be resumed; of several, the one with most documents.

    The manifest does not name it, and it has a progress record and the files of that record. If one is
    missing, the power failed while the segment was being removed.
    """
    listed = _listed(folder, manifest)
    if listed is None:
        return None
    unlisted = [path for path in _segments(folder) if _name(folder, path) not in listed]
    found = [(path, Progress.read(path)) for path in unlisted if _is_ours(path)]
    left = [
        (path, kept)
        for path, kept in found
        if kept is not None and all((path / name).is_file() for name in kept.files)
    ]
    return max(left, key=lambda pair: (pair[1].documents, pair[0].name), default=None)


def remove_temporary(segment: Path) -> None:
    """Remove the files that only the build of a segment needed."""
    remove_made(segment, TEMPORARY)


def _listed(folder: Path, manifest: Manifest | None = None) -> set[str] | None:
    """The segment, postings, deletes and models folders that the manifest names; None if it is damaged."""
    if manifest is None and not (folder / NAME).exists():
        return set()
    try:
        files = (manifest or Manifest.read(folder)).files
        return {found[0] for name in files if (found := STORED.match(name))}
    except ArtifactError:
        return None


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()


def remove_unfinished(
    folder: Path, but: Path | None = None, manifest: Manifest | None = None, *, settled: bool = False
) -> None:
    """Remove what the manifest does not name: files of killed writers.

    Args:
        folder: of the index.
        but: a segment to keep.
        manifest: of the index, if it was read already.
        settled: whether the manifest is known to be synced. If not, it is written again before anything is
            removed. Its last sync may have failed or not happened, and after a power failure the previous
            manifest would name removed files.
    """
    with suppress(OSError, ArtifactError):
        for path in _uncommitted(folder):
            path.unlink()
        listed = _listed(folder, manifest)
        if listed is None:  # remove nothing if the manifest is damaged
            return
        gone = [path for path in stored(folder) if path != but and _name(folder, path) not in listed]
        if gone:
            settle(folder, settled)
        remove(gone)
        for path in _segments(folder):
            if _name(folder, path) in listed and _is_ours(path):
                remove_temporary(path)


def settle(folder: Path, settled: bool) -> None:
    """Before a removal, ensure that the manifest is synced, and that its copy is the same or absent.

    `settled` says whether the manifest is known to be synced. The caller has locked the folder.

    Raises:
        ArtifactError: the manifest cannot be written again.
        OSError: a copy that differs cannot be removed.
    """
    manifest, copy = folder / NAME, folder / COPY
    content = manifest.read_bytes() if manifest.exists() else None
    same = not copy.exists() or copy.read_bytes() == content
    if content is not None and not (settled and same):
        try:
            write_bytes(folder, content)
            return
        except ArtifactError:
            if not settled:
                raise
    if not same:
        copy.unlink()
        sync_folder(folder)


def remove(folders: Iterable[Path]) -> None:
    """Remove folders of an index, but no file that we did not make."""
    with suppress(OSError):
        for path in folders:
            if _is_ours(path):
                _remove_model(path / MODEL)
                remove_made(path, MADE)
                if [found.name for found in path.glob("*")] == [MARKER]:  # only if that leaves nothing
                    sync_folder(path)  # the marker goes last, even if the power fails
                    remove_made(path, (MARKER,))
