"""Build an index: stream documents, encode them, write a segment, commit."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from counterpoint import __version__
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.files import sync_file, sync_folder, writing
from counterpoint.index.graph import check_faiss
from counterpoint.index.lexical import LexicalBuilder
from counterpoint.index.manifest import NAME, FileEntry, Manifest, SegmentEntry
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.settings import IndexSettings, TextModel
from counterpoint.types import Document

__all__ = ["build_index", "keep_search"]

BATCH = 512  # documents encoded and written at a time; bounds the memory of a build
LOCK = ".lock"
UNFINISHED = f".{NAME}.*.partial"  # what a process leaves that is killed during the commit itself


def build_index(
    documents: Iterable[Document],
    model: TextModel | None,
    folder: str | Path,
    settings: IndexSettings | None = None,
    *,
    overwrite: bool = False,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Manifest:
    """Index documents into a folder; readers see nothing, or the old index, until all of it is there.

    Args:
        documents: streamed; never held whole.
        model: encodes the documents; None for a lexical index.
        folder: created if need be. An unfinished index in it is replaced, a finished one only if asked.
        settings: what to keep; `IndexSettings()` if not given.
        overwrite: replace an index that is there.
        on_progress: called with the number of documents done.

    Raises:
        ArtifactError: the folder holds something else, is being written, or cannot be written.
        DataError: no documents, or an id that stands twice.
        ConfigError: settings that cannot be, or a gate that keeps no row.
        MissingExtraError: `ann` is asked for and faiss is not installed.
    """
    folder, settings = Path(folder), settings or IndexSettings()
    settings.layouts(model)  # faults in the settings come before anything is touched
    if settings.ann is not None:
        check_faiss()
    with writing(folder), _exclusively(folder, overwrite):
        segment, lexical = (
            f"segments/{_unique()}",
            None if settings.lexical is None else f"lexical/{_unique()}",
        )
        try:
            entry = _write(documents, model, folder, (segment, lexical), settings, on_progress)
            manifest = _describe(folder, model, settings, entry, lexical)
            manifest.write(folder)
        except sqlite3.OperationalError as error:  # SQLite's own word for a full or failing disk
            raise OSError(error) from error
        finally:
            _remove_unlisted(folder)
    return manifest


def _write(
    documents: Iterable[Document],
    model: TextModel | None,
    folder: Path,
    names: tuple[str, str | None],
    settings: IndexSettings,
    on_progress: Callable[[int], None],
) -> SegmentEntry:
    """Write all documents into one new segment, and their terms into new postings."""
    segment, lexical = names
    most: list[str] = []  # the batch with the most text, to look at where a gate kept nothing
    terms = None if settings.lexical is None else LexicalBuilder(settings.lexical)
    with SegmentWriter(folder / segment, settings.layouts(model)) as writer:
        for batch in _batches(documents):
            texts = [document.full_text for document in batch]
            most = max(most, texts, key=lambda some: sum(map(len, some)))
            writer.append(batch, {} if model is None else model.encode_document(texts))
            if terms is not None:
                for text in texts:
                    terms.add(text)
            on_progress(writer.documents)
    if writer.documents == 0:
        raise DataError("the source has no documents; there is nothing to index")
    if model is not None and settings.gate is not None:
        _check_gate(model, settings.gate, writer, most)
    if terms is not None and lexical is not None:
        terms.write(folder / lexical)
    return SegmentEntry(segment.removeprefix("segments/"), writer.documents, writer.vectors)


def _check_gate(model: TextModel, gate: float, writer: SegmentWriter, texts: Sequence[str]) -> None:
    """Refuse a gate that keeps no row of any document, which would be found by nothing.

    Raises:
        ConfigError: saying how large the gate's values are in these texts.
    """
    for name, rows in writer.vectors.items():
        if rows or not any(model.spans(texts, name, "document")):
            continue
        largest = model.gate_weights(texts, name).values.max()
        raise ConfigError(
            f"gate {gate:g} keeps no row of {name!r} in any of {writer.documents:,} documents; the largest "
            f"value of the gate in {len(texts):,} of them is {largest:.4g}. Choose a gate below that"
        )


def _describe(
    folder: Path, model: TextModel | None, settings: IndexSettings, segment: SegmentEntry, lexical: str | None
) -> Manifest:
    """Sync the new files and list them with their checksums."""
    roots = [folder / "segments" / segment.name] + ([folder / lexical] if lexical else [])
    paths = sorted(path for root in roots for path in root.rglob("*") if path.is_file())
    for path in paths:
        sync_file(path)
    for root in roots:
        sync_folder(root)
        sync_folder(root.parent)
    described = None
    if model is not None:
        described = {"name": settings.model, "fingerprint": model.fingerprint()}
    return Manifest(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        software=__version__,
        model=described,
        settings={**asdict(settings), "layouts": {k: asdict(v) for k, v in settings.layouts(model).items()}},
        segments=(segment,),
        lexical=lexical,
        files={path.relative_to(folder).as_posix(): FileEntry.of(path) for path in paths},
    )


def keep_search(folder: str | Path, search: Mapping[str, Any]) -> None:
    """Have an index searched by other settings from now on; nothing else of it changes.

    Args:
        folder: the index.
        search: as `SearchSettings.to_dict` gives them.

    Raises:
        ArtifactError: no index there, or another process is writing it.
    """
    Manifest.read(Path(folder))
    with _exclusively(Path(folder), overwrite=True):
        manifest = Manifest.read(Path(folder))
        replace(manifest, settings={**manifest.settings, "search": dict(search)}).write(Path(folder))


@contextmanager
def _exclusively(folder: Path, overwrite: bool) -> Iterator[None]:
    """One writer at a time, and never into a folder that holds something else.

    A folder that was made for a build that then failed is taken away again.
    """
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    ours = (NAME, LOCK, "segments", "lexical")
    foreign = sorted(p.name for p in folder.iterdir() if p.name not in ours and not p.match(UNFINISHED))
    if foreign:
        raise ArtifactError(
            f"holds something that is not an index ({foreign[0]!r}); choose a new folder", path=folder
        )
    if (folder / NAME).exists() and not overwrite:
        raise ArtifactError(
            "already holds an index; pass --overwrite to replace it, or choose another folder", path=folder
        )
    lock = FileLock(folder / LOCK, blocking=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise ArtifactError(
            "another process is writing this index; wait for it to end", path=folder
        ) from error
    try:
        yield
    finally:
        lock.release()  # the empty file stays: deleting it would let two writers hold different locks
        if new and not (folder / NAME).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _remove_unlisted(folder: Path) -> None:
    """Delete segments and postings that the current manifest does not name: old ones, or unfinished ones."""
    for path in folder.glob(UNFINISHED):
        path.unlink()
    listed: set[str] = set()
    if (folder / NAME).exists():
        listed = {"/".join(Path(name).parts[:2]) for name in Manifest.read(folder).files}
    for path in [*folder.glob("segments/*"), *folder.glob("lexical/*")]:
        if path.relative_to(folder).as_posix() not in listed:
            shutil.rmtree(path, ignore_errors=True)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    stream = iter(documents)
    while batch := list(islice(stream, BATCH)):
        yield batch


def _unique() -> str:
    return uuid.uuid4().hex[:12]
