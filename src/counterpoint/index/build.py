"""Build an index: stream documents, encode them, write a segment, commit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from counterpoint.errors import ArtifactError
from counterpoint.files import writing
from counterpoint.index.committing import sealed
from counterpoint.index.database import as_os_error
from counterpoint.index.graph import check_faiss
from counterpoint.index.index import Index
from counterpoint.index.lock import locked
from counterpoint.index.manifest import NAME, Manifest
from counterpoint.index.ours import (
    MODEL,
    check_ours,
    mark,
    new_name,
    remove,
    remove_index,
    remove_temporary,
    remove_unfinished,
    settle,
    stored,
    unfinished_segment,
)
from counterpoint.index.parallel import BatchEncoders, encoders_of
from counterpoint.index.paths import compile_all
from counterpoint.index.progress import Progress
from counterpoint.index.settings import BuildModel, ExportsQueries, IndexSettings, TextModel, remembered_name
from counterpoint.index.sharding import check_shards, divided
from counterpoint.index.stream import DocumentStream
from counterpoint.index.token_pooling import factors_of
from counterpoint.index.writing import Work, Written, write_documents
from counterpoint.memory import peak_resident
from counterpoint.types import Document
from counterpoint.version import version

if TYPE_CHECKING:
    from counterpoint.index.vector_shards import VectorShards

LARGE = 10**5  # with more vectors than this, kernels are compiled at the end of the build

Elsewhere = Callable[[TextModel], AbstractContextManager[BatchEncoders]]
"""Starts what encodes the batches of a build with a model."""

__all__ = ["Elsewhere", "build_index", "keep_search", "kept_count", "kept_text", "remove_index"]


def build_index(
    documents: Iterable[Document],
    model: TextModel | None,
    folder: str | Path,
    settings: IndexSettings | None = None,
    *,
    overwrite: bool = False,
    resume: bool = False,
    processes: int = 1,
    keep_model: bool = True,
    given: VectorShards | None = None,
    elsewhere: Elsewhere | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Manifest:
    """Index documents into a folder. Readers see the old index, or none, until the commit.

    Args:
        documents: a stream; never held in memory as a whole.
        model: encodes the documents; None for a lexical index.
        folder: created if it is missing. An unfinished index in it is replaced unless `resume` is set, a
            finished one only with `overwrite`.
        settings: what to keep. Default: the model's own `index_settings()`, or `IndexSettings()` without a
            model. If the settings name no model, the index refers to the model by its `source`. A model
            without a source (made in Python, or changed since it was loaded) is saved with the index.
        overwrite: replace an existing index.
        resume: continue the interrupted build in the folder, if there is one. Documents that it encoded are
            not encoded again. The result is byte-identical to an uninterrupted build.
        processes: number of encoding processes. Each loads the model and gets a share of this process's
            threads. The result is byte-identical for every number.
        keep_model: save a model that has no source with the index, and what encodes its queries without
            torch. Turn it off for a temporary index.
        given: the documents' vectors, exported by the same model; nothing is encoded.
        elsewhere: starts what encodes the batches, in place of `processes`. The result is the same.
        on_progress: called with the number of documents done.

    Raises:
        ArtifactError: the folder holds something else, another process is writing it, or it cannot be
            written; or the interrupted build is damaged, or used another model, version or layout.
        DataError: there are no documents, two have the same id, or they differ from those of the interrupted
            build.
        ConfigError: invalid settings, or a gate that keeps no row.
        MissingExtraError: `ann` is asked for and faiss is not installed.
    """
    folder, started = Path(folder), time.perf_counter()
    settings, own = _resolved(settings, model, folder, keep_model)
    exports = keep_model and isinstance(model, ExportsQueries)
    home = f"models/{new_name()}" if own is None and exports else own
    settings.layouts(model)  # raises for faulty settings before anything is changed
    check_shards(settings.shards)
    if settings.ann is not None:
        check_faiss()
    segment, lexical = f"segments/{new_name()}", None if settings.lexical is None else f"lexical/{new_name()}"

    written_as: str | None = None

    def replaced() -> bool:
        return (folder / NAME).exists() and Manifest.read(folder).commit == written_as

    with _exclusively(folder, overwrite, resume) as unfinished, writing(folder, replaced):
        if unfinished is not None:
            segment = unfinished[0].relative_to(folder).as_posix()
        new, before = [folder / name for name in (segment, lexical, home) if name], stored(folder)
        try:
            for path in new:
                if not path.exists():
                    mark(path)
            with _encoders(model, processes, elsewhere, needed=given is None) as encoders:
                pool = factors_of(settings.layouts(model))
                stream = DocumentStream(documents, model, on_progress, encoders, given, pool)
                work = Work(stream, model, settings, None if unfinished is None else unfinished[1])
                made = write_documents(work, folder / segment, folder / lexical if lexical else None)
            if own is not None:
                _save(cast(BuildModel, model), folder / own / MODEL)
            told = cast(ExportsQueries, model).export_queries(folder / home) if exports and home else {}
            if home is not None and own is None and "why" in told:
                remove([folder / home])
                home = None
            manifest = _describe(folder, model, made, [name for name in (lexical, home) if name])
            described = {**(manifest.model or {}), "queries": told} if told else manifest.model
            cost = _cost(started, stream.encoder_seconds)
            manifest = replace(manifest, model=described, report=stream.report(), cost=cost)
            vectors = sum(manifest.segments[0].vectors.values())
            if settings.shards > 1:
                manifest = _in_shards(folder, manifest)
            written_as = manifest.commit
            manifest.write(folder)
        except BaseException as error:
            with suppress(OSError, ArtifactError):
                if not replaced():
                    _tidy(folder, [*new, *(path for path in stored(folder) if path not in before)], error)
            if isinstance(error, sqlite3.OperationalError):
                raise as_os_error(error) from error
            raise
        remove_temporary(folder / segment)
        named = [name for entry in manifest.segments for name in entry.folders()]
        kept = [folder / name for name in (*named, home) if name]
        remove(path for path in stored(folder) if path not in kept)
    if vectors > LARGE:
        compile_all()
    return manifest


def _save(model: BuildModel, path: Path) -> None:
    """Save a model with an index. If the disk fails, what is told is the state of the index."""
    try:
        model.save(path)
    except ArtifactError as error:  # tells the state of the model's folder
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise


def _encoders(
    model: TextModel | None, processes: int, elsewhere: Elsewhere | None, *, needed: bool
) -> AbstractContextManager[BatchEncoders | None]:
    if elsewhere is not None and needed and model is not None:
        return elsewhere(model)
    return encoders_of(model, processes if needed else 1)


def kept_count(folder: str | Path) -> int:
    """How many documents an interrupted build has encoded and kept in a folder."""
    found = unfinished_segment(Path(folder))
    return 0 if found is None else found[1].documents


def kept_text(folder: str | Path) -> str:
    """What an interrupted build left in a folder and how to resume it; empty if there is nothing."""
    count = kept_count(folder)
    if not count:
        return ""
    return (
        f"{folder}: the first {count:,} documents of an unfinished build are encoded and kept; "
        "build again with --resume to go on from there"
    )


def _tidy(folder: Path, new: Sequence[Path], error: BaseException) -> None:
    """Keep what a failed build encoded and has a progress record of, and say so; remove the rest."""
    settle(folder, settled=True)
    remove(path for path in new if Progress.read(path) is None)
    if kept := kept_text(folder):
        error.add_note(kept)


def _resolved(
    settings: IndexSettings | None, model: TextModel | None, folder: Path, keep_model: bool
) -> tuple[IndexSettings, str | None]:
    """The settings with a name for the model, and the folder inside the index where it is saved, if it is."""
    asked = model if isinstance(model, BuildModel) else None
    settings = settings or (IndexSettings() if asked is None else asked.index_settings())
    if asked is None:
        return settings, None
    name = settings.model or (None if asked.source is None else remembered_name(asked.source, folder))
    if name is not None and not name.startswith("./models/"):  # a rebuild would delete a model kept there
        return replace(settings, model=name), None
    if not keep_model:
        return settings, None
    own = f"models/{new_name()}"
    return replace(settings, model=f"./{own}/{MODEL}"), own


def _describe(folder: Path, model: TextModel | None, written: Written, others: Sequence[str]) -> Manifest:
    """Sync the new files and list them with their checksums; `others` are folders of postings and a model."""
    settings, segment = written.settings, written.entry
    auto = {} if written.auto is None else {"auto": written.auto}
    layouts = {name: layout.to_dict() for name, layout in settings.layouts(model).items()}
    lexical = next((name for name in others if name.startswith("lexical/")), None)
    fitted = any(layout.fitted for layout in settings.layouts(model).values())
    fit = {"fit": segment.name, "fitted": segment.documents} if fitted else {}
    files = sealed(folder, [f"segments/{segment.name}", *others])
    described = None
    if model is not None:
        described = {"name": settings.model, "fingerprint": model.fingerprint()}
    return Manifest(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        software=version(),
        model=described,
        settings={**asdict(settings), "layouts": layouts, **auto},
        segments=(replace(segment, lexical=lexical, **fit),),
        files=files,
    )


def _in_shards(folder: Path, manifest: Manifest) -> Manifest:
    """Divide what was written into shards; a manifest of them. Fits are made by then, on all documents."""
    with Index(folder, manifest) as whole:
        entries = divided(whole, manifest.shards, lambda done: None)
    files = {name: entry for name, entry in manifest.files.items() if name.startswith("models/")}
    files |= sealed(folder, [name for entry in entries for name in entry.folders()])
    return replace(manifest, segments=tuple(entries), files=files)


def keep_search(folder: str | Path, search: Mapping[str, Any]) -> None:
    """Change the search settings of an index; nothing else changes.

    Args:
        folder: the index.
        search: as returned by `SearchSettings.to_dict`.

    Raises:
        ArtifactError: there is no index, or another process is writing it.
    """
    Manifest.read(Path(folder))
    with _exclusively(Path(folder), overwrite=True, resume=True):
        manifest = Manifest.read(Path(folder))
        replace(manifest, settings={**manifest.settings, "search": dict(search)}).write(Path(folder))


@contextmanager
def _exclusively(folder: Path, overwrite: bool, resume: bool) -> Iterator[tuple[Path, Progress] | None]:
    """Lock the folder for one writer and refuse a foreign folder; yield the build that can be resumed.

    Files of a killed writer are removed, unless its build is resumed. If this call created the folder and the
    build fails, the folder is removed, too, unless the build can be resumed.
    """
    new = not folder.exists()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        check_ours(folder)
    if (folder / NAME).exists() and not overwrite:
        raise ArtifactError(
            "already holds an index; replace it with --overwrite (overwrite=True), or choose another folder",
            path=folder,
        )
    began = False
    try:
        with locked(folder):
            began = True
            with writing(folder):  # somebody may remove the index meanwhile
                unfinished = unfinished_segment(folder) if resume else None
            remove_unfinished(folder, but=None if unfinished is None else unfinished[0])
            yield unfinished
    finally:
        if began and new and not (folder / NAME).exists() and unfinished_segment(folder) is None:
            remove_index(folder)


def _cost(started: float, encoder_seconds: float) -> dict[str, float | None]:
    """What a build took since `started`, without its last sync."""
    return {
        "seconds": round(time.perf_counter() - started, 3),
        "encoder_seconds": round(encoder_seconds, 3),
        "peak_resident_bytes": peak_resident(),
    }
