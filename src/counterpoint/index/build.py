"""Build an index: stream documents, encode them, write a segment, commit."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from filelock import FileLock, Timeout
from jaxtyping import Float, Int

from counterpoint import __version__
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.files import sync_file, sync_folder, writing
from counterpoint.index.codec import CodecName
from counterpoint.index.graph import check_faiss
from counterpoint.index.lexical import LexicalBuilder, LexicalSettings
from counterpoint.index.manifest import NAME, FileEntry, Manifest, SegmentEntry
from counterpoint.index.segment import AnnName, SegmentWriter, SetLayout
from counterpoint.types import Document, Ragged, Side, Span

__all__ = ["IndexSettings", "TextModel", "VectorSet", "build_index", "keep_search"]

BATCH = 512  # documents encoded and written at a time; bounds the memory of a build
LOCK = ".lock"
UNFINISHED = f".{NAME}.*.partial"  # what a process leaves that is killed during the commit itself
SMALL = 4  # components below which a scale for each vector would cost as much as it saves


@dataclass(frozen=True)
class VectorSet:
    """What a model says of one of its vector sets.

    Attributes:
        dim: components of a vector.
        pooled: one row a text.
        ids: every row has an id.
        static: a row is decided by its id alone.
        special: ids that stand for nothing in a text ([CLS], [MASK] and their like), which idf weighs by 0.
    """

    dim: int
    pooled: bool
    ids: bool
    static: bool = False
    special: tuple[int, ...] = ()


class TextModel(Protocol):
    """What an index needs of a model: texts in, named packed vectors out. No torch on this side."""

    @property
    def sets(self) -> Mapping[str, VectorSet]:
        """The vector sets by name."""
        ...

    def fingerprint(self) -> str:
        """Equal exactly for models that compute the same."""
        ...

    def encode_query(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """Vectors of queries."""
        ...

    def encode_document(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """Vectors of documents."""
        ...

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """The piece of text that each row of a set stands for, whether it is kept in an index or not."""
        ...

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """The id of each row that `spans` tells of, for sets that have ids."""
        ...

    def gate_weights(self, texts: Sequence[str], name: str) -> Ragged:
        """For sets of which a gate drops rows: its value for each row of documents that `spans` tells of."""
        ...

    def table(self, name: str) -> Float[np.ndarray, "v d"]:
        """The vector of every id in documents, for static sets."""
        ...


@dataclass(frozen=True)
class IndexSettings:
    """What an index keeps.

    Attributes:
        codec: how vectors are stored. Pooled vectors are few, so with `int4` they get `int8`. Vectors of
            fewer than 4 components get `float16` for both: a scale each would take as much room. Static sets
            have no vectors stored.
        sets: which of the model's vector sets; None for all.
        lexical: BM25 settings; None for no lexical part.
        search: how it is searched unless told otherwise (`SearchSettings` as plain data). Sets that it calls
            `exact` get an inverted index.
        ann: an approximate first stage of pooled sets; None for an exact one, which looks at every vector.
        model: name under which the model will be found again; a relative path is relative to the index.
        gate: what the model's gates were closed to before (`Model.close_gates`); None where nothing was done.
    """

    codec: CodecName = "int8"
    sets: tuple[str, ...] | None = None
    lexical: LexicalSettings | None = LexicalSettings()
    search: Mapping[str, Any] | None = None
    model: str | None = None
    ann: AnnName | None = None
    gate: float | None = None

    def layouts(self, model: TextModel | None) -> dict[str, SetLayout]:
        """The stored sets of a model.

        Raises:
            ConfigError: a set that the model does not have or that cannot match as `search` says, or nothing
                to store at all.
        """
        known = {} if model is None else dict(model.sets)
        wanted = tuple(known) if self.sets is None else self.sets
        missing = [name for name in wanted if name not in known]
        if missing:
            raise ConfigError(
                f"the model has no vector set {missing[0]!r}; it has {', '.join(known) or 'none'}"
            )
        odd = [name for name in wanted if not name.isidentifier()]
        if odd:
            raise ConfigError(f"a vector set must be named like a Python variable, found {odd[0]!r}")
        if not wanted and self.lexical is None:
            raise ConfigError("neither vectors nor a lexical part: there would be nothing to search")
        exact = tuple((self.search or {}).get("exact", ()))
        layouts = {
            name: SetLayout(
                x.dim,
                x.pooled,
                self._codec(x),
                x.ids,
                name in exact and not x.static,
                self.ann if x.pooled else None,
                x.static,
            )
            for name, x in ((name, known[name]) for name in wanted)
        }
        for key, names in (("exact", exact), ("floor", (self.search or {}).get("floor", ()))):
            check_matching(key, names, layouts)
        if self.ann is not None and not any(layout.ann for layout in layouts.values()):
            raise ConfigError(f"ann={self.ann!r}: there is no pooled set to search approximately")
        return layouts

    def _codec(self, vectors: VectorSet) -> CodecName:
        if vectors.static:
            return "float32"
        if self.codec in ("int8", "int4") and vectors.dim < SMALL:
            return "float16"
        return "int8" if vectors.pooled and self.codec == "int4" else self.codec


def check_matching(key: str, names: Sequence[str], layouts: Mapping[str, SetLayout]) -> None:
    """Refuse `exact` or `floor` (the key) of sets that are not there, pooled, or without ids.

    Raises:
        ConfigError: saying which.
    """
    for name in names:
        if name not in layouts:
            raise ConfigError(
                f"search.{key}: no vector set {name!r}; there are {', '.join(layouts) or 'none'}"
            )
        if layouts[name].pooled:
            raise ConfigError(
                f"search.{key}: {name!r} is pooled; only sets of several vectors match by words"
            )
        if key == "exact" and not layouts[name].ids:
            raise ConfigError(f"search.exact: the vectors of {name!r} have no ids to match by")


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
    terms = None if settings.lexical is None else LexicalBuilder(settings.lexical)
    with SegmentWriter(folder / segment, settings.layouts(model)) as writer:
        for batch in _batches(documents):
            texts = [document.full_text for document in batch]
            writer.append(batch, {} if model is None else model.encode_document(texts))
            if terms is not None:
                for text in texts:
                    terms.add(text)
            on_progress(writer.documents)
    if writer.documents == 0:
        raise DataError("the source has no documents; there is nothing to index")
    if terms is not None and lexical is not None:
        terms.write(folder / lexical)
    return SegmentEntry(segment.removeprefix("segments/"), writer.documents, writer.vectors)


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
