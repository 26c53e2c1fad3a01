"""Compact an index: merge segments and drop deleted documents.

Each merge is a separate commit, so a killed compaction continues from the last one. Readers keep the files
that they have open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from counterpoint.index.committing import commit, exclusively, telling
from counterpoint.index.index import Index
from counterpoint.index.manifest import SegmentEntry
from counterpoint.index.merge_rule import Merge, all_due, due
from counterpoint.index.ours import new_name
from counterpoint.index.rewriting import rewritten

__all__ = ["compact"]


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
    like = replace(sources[0].entry, name=new_name())  # the others are of its kind, or get the same fit
    entry = replace(like, documents=0, vectors={}, lexical=None, deletes=None, deleted=0)
    if merge.codes and merge.fit is None:
        live = sum(each.entry.live for each in sources)
        entry = replace(entry, codecs={}, fit=entry.name, fitted=live)
    elif merge.codes:
        fitted = next(each.entry for each in index.segments if each.entry.fit == merge.fit)
        entry = replace(entry, codecs={}, fit=fitted.fit, fitted=fitted.fitted)
    return rewritten(index, entry, [(each, each.rows, None) for each in sources], on_progress)
