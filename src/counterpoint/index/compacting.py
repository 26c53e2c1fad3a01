"""Compact an index: merge segments and drop deleted documents.

Each merge is a separate commit, so a killed compaction continues from the last one. Readers keep the files
that they have open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from counterpoint.index.committing import commit, exclusively, telling
from counterpoint.index.index import Index
from counterpoint.index.lexical_builder import terms_again
from counterpoint.index.manifest import SegmentEntry
from counterpoint.index.merge_rule import Merge, all_due, due
from counterpoint.index.ours import mark, new_name, remove_temporary
from counterpoint.index.piece import Piece
from counterpoint.index.segment import Segment, SegmentWriter
from counterpoint.index.term_files import TermFiles
from counterpoint.index.term_runs import merge_terms
from counterpoint.index.term_scores import PARAMETERS

__all__ = ["compact"]

TOGETHER = 512  # documents copied at a time; bounds the memory


def compact(
    index: Index, *, everything: bool = False, on_progress: Callable[[int], None] = lambda done: None
) -> int:
    """Do all merges that `counterpoint.index.merge_rule` asks for, one commit each.

    Args:
        index: any snapshot of it.
        everything: merge all segments that can be merged, whatever the rule says.
        on_progress: called with the number of documents written so far.

    Returns:
        Number of commits.

    Raises:
        ArtifactError: another process is writing the index, it cannot be written, or it is damaged.
    """
    rule, commits, done = all_due if everything else due, 0, 0
    if not everything and rule(index.refreshed().manifest.segments) is None:
        return 0  # with `everything` the lock is taken anyway, to remove what a killed writer left
    while True:
        with exclusively(index) as now, telling(now.folder, now.manifest):
            merge = rule(now.manifest.segments)
            if merge is None:
                return commits
            before = done
            entry = _merged(now, merge, lambda more, before=before: on_progress(before + more))
            done += entry.documents
            entries = list(now.manifest.segments)
            entries[merge.first : merge.end] = [entry]
            commit(now.folder, now.manifest, entries)
            commits += 1


def _merged(index: Index, merge: Merge, on_progress: Callable[[int], None]) -> SegmentEntry:
    sources = index.segments[merge.first : merge.end]
    first = sources[0].entry  # the others are of its kind, or get the same fit
    entry = SegmentEntry(new_name(), 0, {}, codecs=first.codecs, fit=first.fit, fitted=first.fitted)
    if merge.codes and merge.fit is None:
        live = sum(each.entry.live for each in sources)
        entry = replace(entry, codecs={}, fit=entry.name, fitted=live)
    elif merge.codes:
        like = next(each.entry for each in index.segments if each.entry.fit == merge.fit)
        entry = replace(entry, codecs={}, fit=like.fit, fitted=like.fitted)
    path = index.folder / "segments" / entry.name
    mark(path)
    fields = index.manifest.settings.get("metadata", {})
    layouts = entry.layouts(index.layouts)
    with SegmentWriter(path, layouts, fields, fit=_fits(index, entry)) as writer:
        for segment in sources:
            pieces = segment.pieces(index.layouts)
            for at in range(0, len(segment.rows), TOGETHER):
                writer.copy(segment, pieces, segment.rows[at : at + TOGETHER])
                on_progress(writer.documents)
    remove_temporary(path)
    entry = replace(entry, documents=writer.documents, vectors=writer.vectors)
    return entry if not index.manifest.has_lexical else replace(entry, lexical=_lexical(index, sources))


def _fits(index: Index, entry: SegmentEntry) -> Mapping[str, list[Piece]]:
    """By set of few bits, the pieces that share the new segment's fit; empty if it gets its own."""
    if entry.fit is None or entry.fit == entry.name:
        return {}
    fitted = {name: layout for name, layout in index.layouts.items() if layout.fitted}
    chosen = [each.pieces(fitted) for each in index.segments if each.entry.fit == entry.fit]
    return {name: [pieces[name] for pieces in chosen] for name in fitted}


def _lexical(index: Index, sources: Sequence[Segment]) -> str:
    """Write BM25 of the new segment and return the folder; scores of earlier versions are counted again."""
    terms = [(segment.terms, segment.live) for segment in sources if segment.terms is not None]
    if any(PARAMETERS in files for files, _ in terms):
        every = (segment.document(row) for segment in sources for row in segment.rows.tolist())
        return terms_again(index.folder, index.manifest, every)
    name = f"lexical/{new_name()}"
    mark(index.folder / name)
    opened = [(files.once("terms", partial(TermFiles, files)), live) for files, live in terms]
    merge_terms(opened, index.folder / name)
    return name
