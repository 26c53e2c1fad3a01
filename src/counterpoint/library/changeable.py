"""The calls of `OpenIndex` that change or export an index."""

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
        index: the snapshot that it searches.
    """

    index: Index

    @property
    @abstractmethod
    def model(self) -> Model | None:
        """The model that the index was built with; None for BM25 only."""

    @abstractmethod
    def refresh(self) -> bool:
        """Switch to the last commit; return whether it is a new one."""

    @contextmanager
    def writing(
        self, on_progress: Callable[[int], None] = lambda done: None, *, compact: bool = True
    ) -> Iterator[Changes]:
        """Commit several changes together at the end of the block, or none after an error.

        Afterwards this index searches the new commit. Others that have it open search the commit that they
        opened, until they `refresh`.

        Args:
            on_progress: called with the number of documents added so far.
            compact: compact afterwards if due by the rule of `counterpoint.index.merge_rule`.

        Raises:
            ArtifactError: another process is writing the index, or it cannot be written.

        Warns:
            UserWarning: the change is committed, but the compaction after it failed.

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
        """Add documents in one commit; return how many (passages, if documents were cut).

        Args:
            source: as `counterpoint.index` takes it.
            on_progress: called with the number of documents added so far.
            settings: fields of `AddOptions`.

        Raises:
            DataError: an id exists already and `replace` is not set, or the source cannot be read.
            ConfigError: a setting does not exist or has an invalid value.
            ArtifactError: another process is writing, the index cannot be written, or its model is missing.
        """
        with self.writing(on_progress) as changes:
            return changes.add(source, **settings)

    def update(self, source: Any, **settings: Unpack[AddKeywords]) -> int:
        """Add documents in one commit, replacing those with the same ids; return how many were added."""
        return self.add(source, **{**settings, "replace": True})

    def delete(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        where: str | Expression | None = None,
        missing_ok: bool = False,
    ) -> int:
        """Delete documents in one commit, as `Changes.delete`; return how many."""
        with self.writing() as changes:
            return changes.delete(ids, where=where, missing_ok=missing_ok)

    def compact(
        self,
        *,
        everything: bool = True,
        refit: bool = False,
        shards: int | None = None,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> int:
        """Merge segments and drop deleted documents; return the number of commits.

        Every merge is a commit of its own: after an interruption, call it again. Readers are not disturbed.

        Args:
            everything: merge all that can become one segment; otherwise only what is due by the rule.
            refit: encode all documents again and refit means of words and centroids, into one segment. This
                takes as long as building the index, and continues where it was interrupted.
            shards: divide the index into this many shards (see `BuildOptions.shards`); None to leave them.
            on_progress: called with the number of documents written so far.

        Raises:
            ArtifactError: another process is writing the index, it cannot be written, or it is damaged.
            ConfigError: an invalid number of shards.
        """
        from counterpoint.index.compacting import compact
        from counterpoint.index.sharding import divide

        if refit:
            refitted(self.index, self.model, on_progress)
            commits = 1
        else:
            commits = compact(self.index, everything=everything, on_progress=on_progress)
        if shards is not None:
            commits += divide(self.index, shards, on_progress)
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
        """Write all documents, and optionally vectors, to a folder that `counterpoint.index` reads.

        See `counterpoint.library.index_export.export_index`.
        """
        from counterpoint.library.index_export import export_index

        how = ExportOptions(vectors, where, overwrite)
        return export_index(self.index, folder, how, on_progress)

    def export_to(
        self,
        engine: str,
        *,
        url: str | None = None,
        folder: str | Path | None = None,
        name: str | None = None,
        overwrite: bool = False,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> dict[str, Any]:
        """Write documents, metadata, vectors and BM25 terms to a search engine; continue if interrupted.

        See `counterpoint.exporters.writing.export_to`.
        """
        from counterpoint.exporters.writing import export_to

        place = {"url": url, "folder": folder, "name": name, "overwrite": overwrite}
        return export_to(self.index, engine, **place, on_progress=on_progress)
