"""Write documents of existing segments into a new one, as they are stored, without encoding them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int

from counterpoint.index.index import Index
from counterpoint.index.lexical_builder import terms_again
from counterpoint.index.manifest import SegmentEntry
from counterpoint.index.ours import mark, new_name, remove_temporary
from counterpoint.index.piece import Piece
from counterpoint.index.segment import Segment, SegmentWriter
from counterpoint.index.term_files import TermFiles
from counterpoint.index.term_runs import merge_terms
from counterpoint.index.term_scores import PARAMETERS

__all__ = ["Source", "rewritten"]

TOGETHER = 512  # documents copied at a time; bounds the memory

Source = tuple[Segment, Int[np.ndarray, " k"], Int[np.ndarray, " k"] | None]
"""A segment, some of its rows, and their places in the order of adding (None for those of the segment)."""


def rewritten(
    index: Index, entry: SegmentEntry, sources: Sequence[Source], on_progress: Callable[[int], None]
) -> SegmentEntry:
    """Write a new segment of documents from others; return its complete entry.

    Args:
        index: the index, locked by the caller.
        entry: the new segment's name, shard, codecs and fit.
        sources: the documents, in order.
        on_progress: called with the number of documents written so far.
    """
    path = index.folder / entry.path
    mark(path)
    fields = index.manifest.settings.get("metadata", {})
    with SegmentWriter(path, entry.layouts(index.layouts), fields, fit=_fits(index, entry)) as writer:
        for segment, rows, places in sources:
            pieces = segment.pieces(index.layouts)
            for at in range(0, len(rows), TOGETHER):
                some = slice(at, at + TOGETHER)
                writer.copy(segment, pieces, rows[some], None if places is None else places[some])
                on_progress(writer.documents)
    remove_temporary(path)
    entry = replace(entry, documents=writer.documents, vectors=writer.vectors)
    if not index.manifest.has_lexical:
        return entry
    return replace(entry, lexical=_lexical(index, sources, entry.home))


def _fits(index: Index, entry: SegmentEntry) -> Mapping[str, list[Piece]]:
    """By set of few bits, the pieces that share the new segment's fit; empty if it gets its own."""
    if entry.fit is None or entry.fit == entry.name:
        return {}
    fitted = {name: layout for name, layout in index.layouts.items() if layout.fitted}
    chosen = [each.pieces(fitted) for each in index.segments if each.entry.fit == entry.fit]
    return {name: [pieces[name] for pieces in chosen] for name in fitted}


def _lexical(index: Index, sources: Sequence[Source], home: str) -> str:
    """Write BM25 of the new segment and return the folder; scores of earlier versions are counted again."""
    terms = [(segment.terms, _marked(segment, rows)) for segment, rows, _ in sources]
    known = [(files, marked) for files, marked in terms if files is not None]
    if any(PARAMETERS in files for files, _ in known):
        every = (row for segment, rows, _ in sources for row in segment.database.read(rows))
        return terms_again(index.folder, index.manifest, every, home)
    name = f"{home}lexical/{new_name()}"
    mark(index.folder / name)
    opened = [(files.once("terms", TermFiles), marked) for files, marked in known]
    merge_terms(opened, index.folder / name)
    return name


def _marked(segment: Segment, rows: Int[np.ndarray, " k"]) -> Bool[np.ndarray, " n"] | None:
    """For each document of a segment, whether it is in `rows`; None if all are."""
    if len(rows) == segment.documents:
        return None
    found = np.zeros(segment.documents, bool)
    found[rows] = True
    return found
