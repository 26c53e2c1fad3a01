"""Export an index: its documents as JSON Lines and, optionally, its vectors.

FOLDER/corpus.jsonl   BEIR's layout: `_id`, `title`, `text`, `metadata`; for passages `parent` and `start`
FOLDER/export.json    settings, model, counts, see `counterpoint.library.export_description`
FOLDER/vectors/       see `counterpoint.index.vector_shards`
FOLDER/model/         the model, if the index has the only copy
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Int

from counterpoint.data import write_documents
from counterpoint.errors import ConfigError
from counterpoint.folders import publish_folder
from counterpoint.index import Index
from counterpoint.index.codec import CODECS, Bits, CodecName
from counterpoint.index.layout import SetLayout
from counterpoint.index.static import StaticStore
from counterpoint.index.stored_rows import split_by_segment
from counterpoint.index.vector_shards import ExportedSet, ShardWriter
from counterpoint.library.export_description import EXPORT, MODEL, SETTINGS, Description
from counterpoint.library.options import ExportOptions
from counterpoint.types import Document, Ragged, rows_of_sets
from counterpoint.version import version

__all__ = ["export_index"]

BATCH = 64  # documents read at a time; more would need more memory than a file of vectors


def export_index(
    index: Index,
    folder: str | Path,
    options: ExportOptions | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Write the documents of an index to a folder that `counterpoint index` reads; all or nothing.

    Args:
        index: a snapshot; deleted documents are left out.
        folder: the folder to write.
        options: what to write.
        on_progress: called with the number of documents done.

    Returns:
        The `folder`, the number of `documents` and `passages`, whether there are `vectors`, and `bytes`.

    Raises:
        ConfigError: `where` is malformed, `vectors` are asked for of an index without any, or the folder is
            within the index.
        ArtifactError: the folder exists and `overwrite` is not set, or it holds something else; it cannot be
            written; or the index is damaged.
    """
    options = options or ExportOptions()
    folder = Path(folder)
    home = Path(os.path.realpath(folder))
    if home.is_relative_to(os.path.realpath(index.folder)):
        raise ConfigError(f"{folder}: within the index; choose a folder elsewhere")
    if options.vectors and not index.layouts:
        raise ConfigError("there are no vectors to export: the index has only BM25")
    positions = index.positions
    if options.where is not None:
        positions = index.ordered(np.flatnonzero(index.matching(options.where)))
    with publish_folder(folder, overwrite=options.overwrite, kind=EXPORT) as target:
        sets = _sets(index) if options.vectors else {}
        shards = ShardWriter(target, sets) if options.vectors else None
        pass_ = _Pass(index, shards, on_progress)
        write_documents(pass_.documents(positions), target / "corpus.jsonl", layout="beir-jsonl")
        if shards is not None:
            shards.close()
        whole = len(positions) == index.end
        about = Description(
            software=version(),
            documents=pass_.wholes,
            passages=len(positions),
            model=_model(index, home, target),
            settings={name: x for name, x in index.manifest.settings.items() if name in SETTINGS},
            report=dict(index.manifest.report) if whole else {},
            sets=sets,
            shards=tuple(shards.shards) if shards is not None else (),
        )
        about.write(target)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    counts = {"documents": about.documents, "passages": about.passages}
    return {"folder": str(folder), **counts, "vectors": options.vectors, "bytes": size}


@final
@dataclass
class _Pass:
    """One pass over documents, which writes their vectors and yields the documents."""

    index: Index
    shards: ShardWriter | None
    on_progress: Callable[[int], None]
    wholes: int = 0
    _last: str | None = field(default=None, init=False)

    def documents(self, positions: Int[np.ndarray, " n"]) -> Iterator[Document]:
        for first in range(0, len(positions), BATCH):
            some = positions[first : first + BATCH]
            batch = self.index.documents_at(some)
            if self.shards is not None:
                rows = {name: _rows(self.index, name, some) for name in self.index.layouts}
                self.shards.append(batch, rows)
            for document in batch:
                self.wholes += document.parent is None or document.parent != self._last
                self._last = document.parent
                yield document
            self.on_progress(first + len(batch))


def _rows(index: Index, name: str, positions: Int[np.ndarray, " k"]) -> Ragged:
    """One vector set of some documents; for a static set, ids and vectors of size 0."""
    store = index.sets[name]
    if not isinstance(store, StaticStore):
        return store.take(positions)
    found, places = [], []
    for i, where in split_by_segment(index.starts, positions):
        part = store.parts[i]
        rows, offsets = rows_of_sets(part.offsets, positions[where] - index.starts[i])
        ids = part.vocabulary[part.ranks[rows]].astype(np.int64)
        found.append(Ragged(np.zeros((len(ids), 0), np.float32), offsets, ids))
        places.append(where)
    return Ragged.concatenate(found).take(np.argsort(np.concatenate(places)))


def _sets(index: Index) -> dict[str, ExportedSet]:
    found = {}
    for name, layout in index.layouts.items():
        static = layout.kind == "static"
        found[name] = ExportedSet(layout.dim, layout.pooled, layout.ids, static, _codec(index, name, layout))
    return found


def _codec(index: Index, name: str, layout: SetLayout) -> CodecName:
    """The codec of a set: that of a segment which stores it in few bits, if there is one."""
    for segment in index.manifest.segments:
        codec = segment.codecs.get(name, layout.codec)
        if isinstance(CODECS[codec], Bits):
            return codec
    return layout.codec


def _model(index: Index, home: Path, target: Path) -> dict[str, str | None] | None:
    """The model's fingerprint, and its path relative to the export; copied if only the index has it."""
    about = index.manifest.model
    if about is None:
        return None
    name = about["name"]
    if name is not None and name.startswith("./"):
        model = Path(os.path.realpath(index.folder / name))
        if model.is_relative_to(os.path.realpath(index.folder)):
            shutil.copytree(model, target / MODEL)
            name = f"./{MODEL}"
        else:
            name = "./" + Path(os.path.relpath(model, home)).as_posix()
    return {"name": name, "fingerprint": about["fingerprint"]}
