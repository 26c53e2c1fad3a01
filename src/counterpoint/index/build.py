"""Build an index: stream documents, encode them, write a segment, commit."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.files import sync_file, sync_folder, writing
from counterpoint.index.checked import write_blocks
from counterpoint.index.graph import check_faiss
from counterpoint.index.lexical_builder import LexicalBuilder
from counterpoint.index.manifest import NAME, FileEntry, Manifest, SegmentEntry
from counterpoint.index.ours import (
    LOCK,
    MARKER,
    MODEL,
    check_ours,
    mark,
    remove,
    remove_index,
    remove_unfinished,
    stored,
)
from counterpoint.index.paths import compile_all
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.settings import (
    BuildModel,
    ExportsQueries,
    IndexSettings,
    TextModel,
    remembered_name,
)
from counterpoint.index.stream import DocumentStream
from counterpoint.memory import peak_resident
from counterpoint.types import Document

LARGE = 10**5  # vectors of an index whose searches will want kernels compiled

__all__ = ["build_index", "keep_search", "remove_index"]


def build_index(
    documents: Iterable[Document],
    model: TextModel | None,
    folder: str | Path,
    settings: IndexSettings | None = None,
    *,
    overwrite: bool = False,
    keep_model: bool = True,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Manifest:
    """Index documents into a folder; readers see nothing, or the old index, until all of it is there.

    Args:
        documents: streamed; never held whole.
        model: encodes the documents; None for a lexical index.
        folder: created if need be. An unfinished index in it is replaced, a finished one only if asked.
        settings: what to keep; if not given, what the model asks for, or `IndexSettings()` without a model.
            Where they do not name the model, it is remembered by its own `source`, and if it has none (it was
            made in Python, or changed since it was loaded) it is saved with the index.
        overwrite: replace an index that is there.
        keep_model: save a model that has no source with the index, and what encodes its queries without
            torch; not worth it for an index that is soon gone.
        on_progress: called with the number of documents done.

    Raises:
        ArtifactError: the folder holds something else, is being written, or cannot be written.
        DataError: no documents, or an id that stands twice.
        ConfigError: settings that cannot be, or a gate that keeps no row.
        MissingExtraError: `ann` is asked for and faiss is not installed.
    """
    folder, started = Path(folder), time.perf_counter()
    settings, own = _resolved(settings, model, folder, keep_model)
    exports = keep_model and isinstance(model, ExportsQueries)
    home = f"models/{_unique()}" if own is None and exports else own
    settings.layouts(model)  # faults in the settings come before anything is touched
    if settings.ann is not None:
        check_faiss()
    names = (f"segments/{_unique()}", None if settings.lexical is None else f"lexical/{_unique()}")
    new = [folder / name for name in (*names, home) if name]

    def replaced() -> bool:
        return (folder / NAME).exists() and Manifest.read(folder).segments[0].name == new[0].name

    with _exclusively(folder, overwrite), writing(folder, replaced):
        try:
            for path in new:
                mark(path)
            stream = DocumentStream(documents, model, on_progress)
            entry = _write(stream, model, folder, names, settings)
            if own is not None:
                cast(BuildModel, model).save(folder / own / MODEL)
            told = cast(ExportsQueries, model).export_queries(folder / home) if exports and home else {}
            if home is not None and own is None and "why" in told:
                remove([folder / home])
                home = None
            manifest = _describe(folder, model, settings, entry, [name for name in (names[1], home) if name])
            described = {**(manifest.model or {}), "queries": told} if told else manifest.model
            manifest = replace(
                manifest, model=described, report=stream.report(), cost=_cost(started, stream.encoder_seconds)
            )
            manifest.write(folder)
        except BaseException as error:
            with suppress(OSError, ArtifactError):
                if not replaced():
                    remove(new)
            if isinstance(error, sqlite3.OperationalError):  # SQLite's own word for a full or failing disk
                raise _as_os_error(error) from error
            raise
        remove(path for path in stored(folder) if path not in new)
    if sum(manifest.segments[0].vectors.values()) > LARGE:
        compile_all()
    return manifest


def _resolved(
    settings: IndexSettings | None, model: TextModel | None, folder: Path, keep_model: bool
) -> tuple[IndexSettings, str | None]:
    """The settings, with a name for the model; and where in the folder it is saved, if it is."""
    asked = model if isinstance(model, BuildModel) else None
    settings = settings or (IndexSettings() if asked is None else asked.index_settings())
    if asked is None or settings.model is not None:
        return settings, None
    if asked.source is not None:
        return replace(settings, model=remembered_name(asked.source, folder)), None
    if not keep_model:
        return settings, None
    own = f"models/{_unique()}"
    return replace(settings, model=f"./{own}/{MODEL}"), own


def _write(
    stream: DocumentStream,
    model: TextModel | None,
    folder: Path,
    names: tuple[str, str | None],
    settings: IndexSettings,
) -> SegmentEntry:
    """Write all documents into one new segment, and their terms into new postings."""
    segment, lexical = names
    most: list[str] = []  # the batch with the most text, to look at where a gate kept nothing
    terms = None
    if settings.lexical is not None and lexical is not None:
        terms = LexicalBuilder(settings.lexical, folder / lexical)
    with SegmentWriter(folder / segment, settings.layouts(model), settings.metadata) as writer:
        for batch, vectors in stream.batches():
            texts = [document.full_text for document in batch]
            most = max(most, texts, key=lambda some: sum(map(len, some)))
            writer.append(batch, vectors)
            if terms is not None:
                for text in texts:
                    terms.add(text)
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
    folder: Path,
    model: TextModel | None,
    settings: IndexSettings,
    segment: SegmentEntry,
    others: Sequence[str],
) -> Manifest:
    """Sync the new files and list them with their checksums; `others` are postings and a model."""
    from counterpoint import __version__

    roots = [folder / name for name in (f"segments/{segment.name}", *others)]
    for root in roots:
        if root.parent.name != "models":  # a model has checksums of its own
            write_blocks(root, [path for path in root.iterdir() if path.name != MARKER])
    paths = sorted(
        path for root in roots for path in root.rglob("*") if path.is_file() and path.name != MARKER
    )
    for path in paths:
        sync_file(path)
    for root in roots:
        sync_folder(root)
    described = None
    if model is not None:
        described = {"name": settings.model, "fingerprint": model.fingerprint()}
    return Manifest(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        software=__version__,
        model=described,
        settings={**asdict(settings), "layouts": {k: asdict(v) for k, v in settings.layouts(model).items()}},
        segments=(segment,),
        lexical=next((name for name in others if name.startswith("lexical/")), None),
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

    What killed writers left is removed, and so is a folder that was made for a build that then failed.
    """
    from filelock import FileLock, Timeout  # brings asyncio with it, for which a search has no use

    new = not folder.exists()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        check_ours(folder)
    if (folder / NAME).exists() and not overwrite:
        raise ArtifactError(
            "already holds an index; pass --overwrite to replace it, or choose another folder", path=folder
        )
    lock = FileLock(folder / LOCK, blocking=False)
    with writing(folder):
        try:
            lock.acquire()
        except Timeout as error:
            raise ArtifactError(
                "another process is writing this index; wait for it to end", path=folder
            ) from error
    try:
        remove_unfinished(folder)
        yield
    finally:
        with suppress(OSError):  # the empty file stays: without it two writers could hold different locks
            lock.release()
        if new and not (folder / NAME).exists():
            remove_index(folder)


def _cost(started: float, encoder_seconds: float) -> dict[str, float | None]:
    """What a build took that began at `started`, but for its last sync."""
    return {
        "seconds": round(time.perf_counter() - started, 3),
        "encoder_seconds": round(encoder_seconds, 3),
        "peak_resident_bytes": peak_resident(),
    }


def _as_os_error(error: sqlite3.OperationalError) -> OSError:
    codes = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_IOERR: errno.EIO}
    code = codes.get(error.sqlite_errorcode & 0xFF, errno.EIO)
    return OSError(code, f"{os.strerror(code)} ({error})")


def _unique() -> str:
    return uuid.uuid4().hex[:12]
