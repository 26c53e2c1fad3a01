"""Change an index: add, delete and replace documents, all in one commit or not at all.

Added documents become a new segment. Deleted ones are marked (`counterpoint.index.deletes`) until a
compaction drops them. Existing files are never written to, so a reader keeps working with what it has open. A
killed writer leaves only folders that no manifest names; the next writer removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import final

import numpy as np
from jaxtyping import Int

from counterpoint.errors import ConfigError, DataError
from counterpoint.index.added import Added
from counterpoint.index.committing import commit, exclusively, telling
from counterpoint.index.deletes import Counts, folders_for, with_deletes
from counterpoint.index.index import Index
from counterpoint.index.lexical_builder import terms_again
from counterpoint.index.manifest import SegmentEntry
from counterpoint.index.segment import Segment
from counterpoint.index.settings import TextModel
from counterpoint.index.sharding import shard_of
from counterpoint.index.stored_rows import merged_counts
from counterpoint.index.stream import BATCH, DocumentStream
from counterpoint.index.term_scores import PARAMETERS
from counterpoint.index.token_pooling import factors_of
from counterpoint.types import Document, Ragged

__all__ = ["Change", "changing"]

NAMED = 3  # ids that a message lists


@contextmanager
def changing(
    index: Index,
    model: TextModel | None = None,
    *,
    load: Callable[[], TextModel | None] | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Change]:
    """Change an index: what the block asks for is committed at its end; after an error nothing is.

    Args:
        index: any snapshot of it; the change applies to its current state.
        model: the one it was built with; None for an index without vectors, or if nothing is added.
        load: used instead of `model`: loads the model once something is added.
        on_progress: called with the number of documents added so far.

    Raises:
        ArtifactError: another process is writing the index, it cannot be written, or the model is another
            one.
    """
    with exclusively(index) as now:
        change = Change(now, load or (lambda: model), on_progress)
        try:
            yield change  # errors in the block are the caller's
            with telling(now.folder, now.manifest):
                change.commit()
        finally:
            change.abandon()


@final
class Change:
    """Changes to an index, applied in the order of the calls. Made by `changing`.

    Attributes:
        replaced: number of documents that `add` replaced, passages not counted.
    """

    def __init__(
        self, index: Index, load: Callable[[], TextModel | None], on_progress: Callable[[int], None]
    ):
        self._index, self._load, self._on_progress = index, load, on_progress
        self._dead = [np.zeros(segment.documents, bool) for segment in index.segments]
        self._added: list[Added] = []
        self._end = index.end if index.order is None else int(index.order.max(initial=-1)) + 1
        self._longer = 0
        self.replaced = 0

    def add(self, documents: Iterable[Document], *, replace: bool = False) -> int:
        """Add documents from a stream. The passages of one document must follow each other.

        Args:
            documents: with ids that are new to the index.
            replace: delete documents with the same ids first, with all their passages.

        Returns:
            How many were added.

        Raises:
            DataError: an id is in the index already, or twice in `documents`; or a document cannot be stored.
            ConfigError: the index has vectors, and there is no model.
        """
        before, mine = sum(len(each) for each in self._added), set[str]()
        checked = self._checked(documents, replace, mine)
        pool = factors_of(self._index.layouts)
        stream = DocumentStream(
            checked, self._model, lambda done: self._on_progress(before + done), pool=pool
        )
        with telling(self._index.folder, self._index.manifest):
            for batch, vectors in stream.batches():
                self._append(batch, vectors or {})
        self._longer += stream.longer
        return sum(len(each) for each in self._added) - before

    def delete(self, ids: Iterable[str], *, missing_ok: bool = False) -> int:
        """Delete documents by their ids, with all their passages.

        Args:
            ids: of whole documents.
            missing_ok: ignore ids that no document has.

        Returns:
            How many documents were deleted, passages not counted.

        Raises:
            DataError: no document has the id, or it is the id of a passage.
        """
        wanted, deleted = iter(dict.fromkeys(ids)), 0
        while batch := list(islice(wanted, BATCH)):
            found = self._found(batch)
            missing = [name for name in batch if name not in found]
            if missing and not missing_ok:
                raise DataError(f"{_told(missing)}: no such document in the index; nothing was changed")
            self._refuse_passages(found)
            self._drop(found.values())
            deleted += len(found)
        return deleted

    def delete_where(self, condition: str) -> int:
        """Delete the documents whose metadata meet a condition; return how many, not counting passages.

        A document that was cut into passages is deleted as a whole if one of them meets the condition.

        Raises:
            ConfigError: the condition is invalid, or this change has added or deleted something before.
        """
        if self._added or any(dead.any() for dead in self._dead):
            raise ConfigError("delete by a condition before anything else, or in a separate change")
        names = self._index.names_of(np.flatnonzero(self._index.matching(condition)))
        return self.delete(self._index.parents.get(name, name) for name in names)

    def commit(self) -> None:
        """Commit the change; write nothing if nothing was changed."""
        added = [each for each in self._added if each.live.any()]
        if not added and not any(dead.any() for dead in self._dead):
            return
        pairs = list(zip(self._index.segments, map(np.flatnonzero, self._dead), strict=True))
        touched = [segment.entry for segment, rows in pairs if len(rows)]
        folders = iter(folders_for(self._index.folder, touched))
        entries = [self._entry(segment, rows, folders) for segment, rows in pairs]
        for each in added:
            each.close()
        entries += [each.entry for each in added]
        entries.sort(key=lambda each: -1 if each.shard is None else each.shard)  # stable
        commit(self._index.folder, self._index.manifest, entries, self._longer)

    def abandon(self) -> None:
        """Close the files."""
        for each in self._added:
            each.abandon()

    @cached_property
    def _model(self) -> TextModel | None:
        if not self._index.layouts:
            return None
        model = self._load()
        if model is None:
            raise ConfigError("adding documents needs the model that the index was built with")
        self._index.check_model(model.fingerprint())
        return model

    # -- steps -----------------------------------------------------------------------------------------

    def _append(self, batch: Sequence[Document], vectors: Mapping[str, Ragged]) -> None:
        shards = self._index.manifest.shards
        if shards == 1:
            places = None if self._index.order is None else self._end + np.arange(len(batch))
            self._current(None).append(batch, vectors, places)
        else:
            mine = np.array([shard_of(document.parent or document.id, shards) for document in batch])
            for shard in np.unique(mine).tolist():
                rows = np.flatnonzero(mine == shard)
                some = {name: each.take(rows) for name, each in vectors.items()}
                self._current(shard).append([batch[row] for row in rows.tolist()], some, self._end + rows)
        self._end += len(batch)

    def _current(self, shard: int | None) -> Added:
        """The segment that receives new documents of a shard.

        A segment has every id once, so a new one is begun after a document of the last was deleted.
        """
        mine = next((each for each in reversed(self._added) if each.entry.shard == shard), None)
        if mine is None or not mine.live.all():
            settings = self._index.manifest.settings
            mine = Added(self._index.folder, self._index.layouts, settings, shard)
            self._added.append(mine)
        return mine

    def _checked(self, documents: Iterable[Document], replace: bool, mine: set[str]) -> Iterator[Document]:
        """Documents to add, after deleting those that they replace; `mine` are ids added by this call."""
        stream = iter(documents)
        while batch := list(islice(stream, BATCH)):
            wholes = list(dict.fromkeys(document.parent or document.id for document in batch))
            wanted = [name for name in wholes if name not in mine]
            rows = [document.id for document in batch if document.parent is not None]
            found = self._found([*wanted, *rows])
            mine.update(wholes)
            if found and replace:
                before = {name: found[name] for name in wanted if name in found}
                self._refuse_passages(before)
                self._drop(before.values())
                self.replaced += len(before)
                found = self._found(rows)
            if found:
                names = _told(list(found))
                raise DataError(f"{names}: already in the index; replace the document, or leave it out")
            yield from batch

    def _found(self, ids: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """For each id, segment number and row of its document and of all its passages."""
        found: dict[str, list[tuple[int, int]]] = {}
        for number, segment in enumerate(self._index.segments):
            for name, rows in segment.rows_of(ids).items():
                left = [row for row in rows if not self._dead[number][row]]
                if left:
                    found.setdefault(name, []).extend((number, row) for row in left)
        for number, each in enumerate(self._added, len(self._index.segments)):
            for name in ids:
                if rows := each.rows_of(name):
                    found.setdefault(name, []).extend((number, row) for row in rows)
        return found

    def _refuse_passages(self, found: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        segments = [*(segment.database for segment in self._index.segments), *self._added]
        for name, places in found.items():
            number, row = places[0]
            if segments[number].is_passage(row) and segments[number].names([row]) == [name]:
                raise DataError(f"{name!r} is a passage; delete or replace the document it was cut from")

    def _drop(self, found: Iterable[Sequence[tuple[int, int]]]) -> None:
        by_segment: dict[int, list[int]] = {}
        for number, row in (place for places in found for place in places):
            by_segment.setdefault(number, []).append(row)
        for number, rows in by_segment.items():
            if number < len(self._dead):
                self._dead[number][rows] = True
            else:
                self._added[number - len(self._dead)].live[rows] = False

    def _entry(self, segment: Segment, rows: Int[np.ndarray, " k"], folders: Iterator[str]) -> SegmentEntry:
        """The entry of a segment after some more rows were deleted, which takes the next of `folders`."""
        folder, entry = self._index.folder, segment.entry
        if segment.terms is not None and PARAMETERS in segment.terms:
            every = segment.database.read(range(segment.documents))
            entry = replace(entry, lexical=terms_again(folder, self._index.manifest, every, entry.home))
        if not len(rows):
            return entry
        live = np.ones(segment.documents, bool) if segment.live is None else segment.live.copy()
        live[rows] = False
        return with_deletes(folder, entry, live, self._counts(segment, rows), next(folders))

    def _counts(self, segment: Segment, rows: Int[np.ndarray, " k"]) -> dict[str, Counts]:
        """For each set, ids and document frequencies of all deleted documents, old and new."""
        number = self._index.segments.index(segment)
        positions, counts = rows + self._index.starts[number], {}
        for name, store in self._index.sets.items():
            if store.layout.ids:
                before = [] if segment.deletes is None else [segment.deletes.counts(name)]
                counts[name] = merged_counts([*before, store.counts_of(positions)])
        return counts


def _told(ids: Sequence[str]) -> str:
    shown = ", ".join(map(repr, ids[:NAMED]))
    return shown if len(ids) <= NAMED else f"{shown} and {len(ids) - NAMED} more"
