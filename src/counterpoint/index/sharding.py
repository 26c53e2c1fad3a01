"""Divide an index into shards, by a hash of the documents' ids.

Every shard has a folder with its own segments. One manifest names all of them, so a commit changes all shards
or none. Segments of all shards share the fits of the undivided index, rows are copied as they are stored, and
each document keeps its place in the order of adding. So a search of all shards gives the scores and the
ranking of the undivided index.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import xxhash
from jaxtyping import Int

from counterpoint.errors import ConfigError
from counterpoint.index.committing import commit, exclusively, telling
from counterpoint.index.index import Index
from counterpoint.index.manifest import SegmentEntry
from counterpoint.index.ours import new_name
from counterpoint.index.rewriting import Source, rewritten

__all__ = ["MOST_SHARDS", "check_shards", "divide", "divided", "empty_text", "shard_of"]

MOST_SHARDS = 10_000
TOGETHER = 4096  # ids read at a time


def check_shards(shards: int) -> None:
    """Check a number of shards.

    Raises:
        ConfigError: it is not from 1 to `MOST_SHARDS`.
    """
    if not 1 <= shards <= MOST_SHARDS:
        raise ConfigError(f"shards must be from 1 to {MOST_SHARDS:,}, found {shards:,}")


def empty_text(shards: int, documents: int) -> str | None:
    """What to tell of more shards than documents; None otherwise."""
    if shards <= documents:
        return None
    return f"there are more shards ({shards:,}) than documents ({documents:,}), so some are empty; use fewer"


def shard_of(document_id: str, shards: int) -> int:
    """The number of the shard that a document belongs to. Passages go with their document."""
    return xxhash.xxh3_64_intdigest(document_id.encode("utf-8", "surrogatepass")) % shards


def divide(index: Index, shards: int, on_progress: Callable[[int], None] = lambda done: None) -> int:
    """Divide an index into another number of shards, in one commit. Nothing is encoded.

    Returns:
        Number of commits: 0 if it has this many shards already.

    Raises:
        ConfigError: the number is not from 1 to `MOST_SHARDS`.
        ArtifactError: another process is writing the index, it cannot be written, or it is damaged.
    """
    check_shards(shards)
    with exclusively(index) as now, telling(now.folder, now.manifest):
        if now.manifest.shards == shards:
            return 0
        entries = divided(now, shards, on_progress)
        settings = {**now.manifest.settings, "shards": shards}
        commit(now.folder, replace(now.manifest, settings=settings), entries)
        return 1


def divided(index: Index, shards: int, on_progress: Callable[[int], None]) -> list[SegmentEntry]:
    """Write all documents of an index into segments of shards; return their entries, for a commit.

    A shard gets one segment for each fit, and one for added documents that wait for a fit. If no document is
    live, the first shard gets a segment without documents, since an index has at least one segment.
    """
    numbers = [_shards_of(index, number, shards) for number in range(len(index.segments))]
    kinds = dict.fromkeys((each.entry.fit, bool(each.entry.codecs)) for each in index.segments)
    entries: list[SegmentEntry] = []
    done = 0
    for shard in range(shards):
        for kind in kinds:
            chosen = [
                number
                for number, each in enumerate(index.segments)
                if (each.entry.fit, bool(each.entry.codecs)) == kind
            ]
            found = [_source(index, at, numbers[at] == shard) for at in chosen]
            if sources := [source for source in found if len(source[1])]:
                entry, before = _entry(index, chosen[0], shard, shards), done
                entries.append(
                    rewritten(index, entry, sources, lambda n, before=before: on_progress(before + n))
                )
                done += entries[-1].documents
    if not entries:
        entries.append(
            rewritten(index, _entry(index, 0, 0, shards), [_source(index, 0, numbers[0] == 0)], on_progress)
        )
    return entries


def _entry(index: Index, like: int, shard: int, shards: int) -> SegmentEntry:
    """A new segment of a shard, with the codecs and the fit of an old one."""
    old = index.segments[like].entry
    home = None if shards == 1 else shard
    return SegmentEntry(new_name(), 0, {}, codecs=old.codecs, fit=old.fit, fitted=old.fitted, shard=home)


def _source(index: Index, number: int, mine: np.ndarray) -> Source:
    """The live rows of a segment that belong to one shard, with their places."""
    segment, start = index.segments[number], int(index.starts[number])
    rows = segment.rows[mine]
    return segment, rows, rows + start if segment.places is None else segment.places[rows]


def _shards_of(index: Index, number: int, shards: int) -> Int[np.ndarray, " k"]:
    """The shard of each live document of a segment; passages go with the document that they were cut from."""
    segment, rows = index.segments[number], index.segments[number].rows
    found = np.zeros(len(rows), np.int64)
    for at in range(0, len(rows), TOGETHER):
        names = segment.database.names(rows[at : at + TOGETHER].tolist())
        found[at : at + TOGETHER] = [shard_of(index.parents.get(name, name), shards) for name in names]
    return found
