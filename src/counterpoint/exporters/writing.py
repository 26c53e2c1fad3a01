"""Write an index to an engine, and continue where an interrupted export stopped."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.exporters.contents import Contents, batches
from counterpoint.exporters.engine import Engine, Place, Writer
from counterpoint.exporters.limits import limits_of
from counterpoint.exporters.names import engine_of
from counterpoint.index import Index

__all__ = ["KEY", "collection_name", "export_to"]

KEY = "COUNTERPOINT_EXPORT_KEY"
"""Environment variable with the key that a server wants: an API key, a token, or `user:password`."""
KEPT = "what was written is kept; the same command continues"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")


def export_to(
    index: Index,
    engine: str,
    *,
    url: str | None = None,
    folder: str | Path | None = None,
    name: str | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Write documents, metadata, vectors and BM25 terms of an index to an engine.

    Documents that the engine has already, with the same content, are not written again. So running it twice
    changes nothing, and an interrupted export continues. Changed documents are replaced.

    Args:
        index: a snapshot; deleted documents are left out.
        engine: one of `counterpoint.exporters.ENGINES`.
        url: address of the engine.
        folder: folder of an engine that runs in this process, or where files for an engine are written.
        name: of the collection: a letter, then letters, digits and `_`. None for the name of the index.
        overwrite: replace files that an earlier export wrote; a collection is never replaced.
        on_progress: called with the number of documents done.

    Returns:
        The `engine`, the `collection`, its place as `url` or `folder`, the number of `documents`, how many
        were `written` and how many were `unchanged`, `held` (for each part, how the engine keeps it), and
        `not_held` (what the engine does not hold, or does otherwise).

    Raises:
        ConfigError: the engine is unknown, the place does not fit it, or the collection has another shape.
        MissingExtraError: the engine's client is not installed.
        ArtifactError: the engine cannot be reached or refused something, or the index is damaged.
    """
    found = engine_of(engine)
    collection = name or collection_name(index.folder)
    if not NAME.fullmatch(collection):
        raise ConfigError(
            f"--name: expected a letter, then letters, digits and _, found {collection!r}; give another name"
        )
    if overwrite and (folder is None or not found.writes_files):
        raise ConfigError(
            f"overwrite replaces files, and this export goes into a collection of {found.title}; remove the "
            "collection there first, or give another name"
        )
    if (url is None) == (folder is None):
        raise ConfigError(f"--to {found.name}: give {found.where}")
    place = Place(url, None if folder is None else Path(folder), os.environ.get(KEY), overwrite)
    contents = Contents.of(index, collection, several=found.multi_vectors)
    not_held = limits_of(index, found, contents)
    writer, done = found.connect(contents, place), False
    try:
        written, passages = _written(index, found, contents, writer, on_progress)
        total, done = writer.count(), True
    except writer.faults as error:
        raise ArtifactError(f"{found.title}: {error}; {KEPT}", path=url or folder) from error
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(KEPT)
        raise
    finally:
        writer.close(done)
    not_held += writer.notes()
    if passages:
        not_held.append("passages: the engine finds passages; group by `parent` to rank whole documents")
    if total is not None and total > len(index):
        not_held.append(
            f"{total - len(index):,} documents of the collection are not in this index; they were left alone"
        )
    return {
        "engine": engine,
        "collection": collection,
        **({"url": url} if url is not None else {"folder": str(folder)}),
        "documents": len(index),
        "written": written,
        "unchanged": len(index) - written,
        "held": found.holds(contents),
        "not_held": not_held,
    }


def collection_name(folder: Path) -> str:
    """A name for a collection from the folder of an index."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", Path(os.path.realpath(folder)).stem).strip("_")
    return (name if name[:1].isalpha() else f"index_{name}")[:100]


def _written(
    index: Index, engine: Engine, contents: Contents, writer: Writer, on_progress: Callable[[int], None]
) -> tuple[int, bool]:
    """Write what the engine lacks; return how many documents, and whether any is a passage."""
    writer.create()
    done = written = 0
    passages = False
    for rows in batches(index, contents, weights=engine.sparse):
        known = writer.stamps([row.document.id for row in rows])
        missing = [row for row in rows if known.get(row.document.id) != row.stamp]
        if missing:
            writer.write(missing)
        passages = passages or any(row.document.parent is not None for row in rows)
        done, written = done + len(rows), written + len(missing)
        on_progress(done)
    writer.finish()
    return written, passages
