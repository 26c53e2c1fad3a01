"""The calls of `OpenIndex` that are not questions: what changes an index, and what writes it out."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from counterpoint.errors import ArtifactError
from counterpoint.index import Index
from counterpoint.library.changes import Changes, refitted
from counterpoint.library.keywords import AddKeywords, with_names
from counterpoint.library.options import ExportOptions

if TYPE_CHECKING:
    from counterpoint.index.field import Expression
    from counterpoint.model import Model

__all__ = ["Changeable"]


class Changeable(ABC):
    """An open index that can be changed.

    Attributes:
        index: the snapshot that it answers from.
    """

    index: Index

    @property
    @abstractmethod
    def model(self) -> Model | None:
        """The model that the index was built with; None for BM25 alone."""

    @abstractmethod
    def refresh(self) -> bool:
        """Answer from the last commit from now on; whether that is another than before."""

    @contextmanager
    def writing(
        self, on_progress: Callable[[int], None] = lambda done: None, *, compact: bool = True
    ) -> Iterator[Changes]:
        """Several changes as one: committed together at the end of the block, and none after an error.

        Afterwards this index answers from what was committed. Others that have it open go on answering from
        what they opened, until they `refresh`.

        Args:
            on_progress: called with the number of documents added so far.
            compact: afterwards do what is due by the rule of `counterpoint.index.merge_rule`.

        Raises:
            ArtifactError: another process is writing the index, or it cannot be written.

        Warns:
            UserWarning: the change is committed, and the compaction after it failed.

        Example:
            >>> from tempfile import mkdtemp
            >>> import counterpoint as cp
            >>> first = [{"id": "a", "text": "A whale is a mammal."}, {"id": "b", "text": "A train is late."}]
            >>> notes = cp.index(first, mkdtemp() + "/notes", model=None)
            >>> with notes.writing() as changes:
            ...     added = changes.add([{"id": "c", "text": "Whales sing."}])
            ...     deleted = changes.delete("a")
            >>> [hit.id for hit in notes.search("whale", workflow="lexical")]
            ['c']
        """
        from counterpoint.index.changing import changing

        with changing(self.index, load=lambda: self.model, on_progress=on_progress) as change:
            yield Changes(change, self.index)
        self.refresh()
        if compact:
            try:
                self.compact(everything=False)
            except ArtifactError as error:
                warnings.warn(f"committed, but not compacted: {error}", stacklevel=3)

    @with_names(AddKeywords)
    def add(
        self,
        source: Any,
        *,
        on_progress: Callable[[int], None] = lambda done: None,
        **settings: Unpack[AddKeywords],
    ) -> int:
        """Add documents in one commit; how many (passages, where documents were cut).

        Args:
            source: as `counterpoint.index` takes it.
            on_progress: called with the number of documents added so far.
            settings: fields of `AddOptions`.

        Raises:
            DataError: an id that is there and is not to be replaced, or the source cannot be read.
            ConfigError: a setting that does not exist or cannot be.
            ArtifactError: another process is writing the index, it cannot be written, or its model is gone.
        """
        with self.writing(on_progress) as changes:
            return changes.add(source, **settings)

    def update(self, source: Any, **settings: Unpack[AddKeywords]) -> int:
        """Add documents in one commit, which replace those with the same ids; how many were added."""
        return self.add(source, **{**settings, "replace": True})

    def delete(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        where: str | Expression | None = None,
        missing_ok: bool = False,
    ) -> int:
        """Delete documents in one commit, as `Changes.delete`; how many."""
        with self.writing() as changes:
            return changes.delete(ids, where=where, missing_ok=missing_ok)

    def compact(
        self,
        *,
        everything: bool = True,
        refit: bool = False,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> int:
        """Join segments and leave deleted documents out; how many commits that took.

        Each is a commit of its own: after an interruption, call it again. Readers are not disturbed.

        Args:
            everything: all that can become one segment does; else what is due by the rule alone.
            refit: encode all documents again and fit means of words and centroids anew: one segment is left.
                It takes as long as building the index did, and goes on where it was interrupted.
            on_progress: called with the number of documents written so far.

        Raises:
            ArtifactError: another process is writing the index, it cannot be written, or it is damaged.
        """
        if refit:
            refitted(self.index, self.model, on_progress)
            commits = 1
        else:
            from counterpoint.index.compacting import compact

            commits = compact(self.index, everything=everything, on_progress=on_progress)
        self.refresh()
        return commits

    def export(
        self,
        folder: str | Path,
        *,
        vectors: bool = ExportOptions.vectors,
        where: str | None = None,
        overwrite: bool = ExportOptions.overwrite,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> dict[str, Any]:
        """Write all documents, and vectors if asked for, into a folder that `counterpoint.index` reads.

        See `counterpoint.library.index_export.export_index`.
        """
        from counterpoint.library.index_export import export_index

        how = ExportOptions(vectors, where, overwrite)
        return export_index(self.index, folder, how, on_progress)
