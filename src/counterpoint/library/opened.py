"""`OpenIndex`: an index with its model and settings, ready to search."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast, final

from typing_extensions import override

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index
from counterpoint.library.asked import changed, settings_of
from counterpoint.library.changes import Changes, refitted
from counterpoint.library.keywords import AddKeywords, RunKeywords, with_names
from counterpoint.library.options import (
    BACKEND,
    CACHED_QUERIES,
    DEEP,
    MEASURES,
    Backend,
    ExportOptions,
    SearchOptions,
)
from counterpoint.library.remembered import Remembered
from counterpoint.library.remote import RemoteIndex, is_address
from counterpoint.library.searchable import Searchable, options_of
from counterpoint.library.stored import encoder_of
from counterpoint.search import LEXICAL, Searcher
from counterpoint.search.fleet import shard_starts
from counterpoint.search.shard import CommitMoved

if TYPE_CHECKING:
    from counterpoint.data import Collection
    from counterpoint.index.field import Expression
    from counterpoint.measure import Report
    from counterpoint.model import Model
    from counterpoint.search import Answer, Run, Workflow
    from counterpoint.search.fleet import Fleet

__all__ = ["OpenIndex", "open_index"]

Found = TypeVar("Found")


@final
class OpenIndex(Searchable):
    """An open index, with the model and the search settings stored in it.

    The query encoder is loaded when it is first needed; BM25 needs none. Vectors of recent queries are
    cached, unless the caller passed a model object, which may change.

    Args:
        folder: an index that `counterpoint index` or `counterpoint.index` wrote.
        model: the model, or its new location if it moved.
        backend: what encodes queries: "auto", "int8", "onnx" or "torch" (see
            `counterpoint.library.options.Backend`).
        cached: number of queries whose vectors are cached; 0 for none.
        fleet: searches the index shard by shard, elsewhere; None to search it here.

    Raises:
        ArtifactError: there is no index, or it is unfinished, damaged or of another version.
    """

    def __init__(
        self,
        folder: str | Path,
        model: Model | str | Path | None = None,
        backend: Backend = BACKEND,
        cached: int = CACHED_QUERIES,
        fleet: Fleet | None = None,
    ):
        self._fleet = fleet
        self.index = self._over(Index(folder))
        self._given, self._lock = model, Lock()
        self._backend: Backend = backend
        self._cached = cached
        self._last: tuple[SearchOptions | None, Searcher | None] = None, None

    def _over(self, index: Index) -> Index:
        return index if self._fleet is None else self._fleet.over(index)

    @cached_property
    def _with_model(self) -> Searcher:
        found = encoder_of(self.index, self._given, self._backend)
        return Searcher(self.index, found if found is self._given else Remembered(found, self._cached))

    def searcher(self, options: SearchOptions | None = None, **settings: Any) -> Searcher:
        """Return a searcher with the settings stored in the index, some of them changed.

        Args:
            options: as for `search`; None for the defaults.
            settings: fields of `SearchSettings`, such as `candidates=500`. As for `search`, new weights are
                fixed unless `adapt` is given as well.

        Raises:
            ConfigError: a setting does not exist or has an invalid value, or the index does not support it.
            ArtifactError: the model is missing, or is not the one that the index was built with.
        """
        if not (options is None or isinstance(options, SearchOptions)):
            raise ConfigError(
                f"searcher: expected settings by name, as in searcher(candidates=500), found {options!r}"
            )
        found = self._searcher(options or SearchOptions())
        return found.with_settings(changed(found.settings, self.index, settings)) if settings else found

    def _searcher(self, options: SearchOptions) -> Searcher:
        # Reading settings takes as long as a BM25 search, and most searches use the same ones.
        with self._lock:
            before, searcher = self._last
            if searcher is None or before != options:
                searcher = self._made(options)
                self._last = copy.deepcopy(options), searcher
        return searcher

    def _made(self, options: SearchOptions) -> Searcher:
        settings = settings_of(self.index, options)
        if options.workflow == LEXICAL or self.index.manifest.model is None:
            found = Searcher(self.index, None, settings)
        else:
            found = self._with_model.with_settings(settings)
        return found if options.where is None else found.where(str(options.where))

    @property
    def is_loaded(self) -> bool:
        """Whether the model has been loaded."""
        return "_with_model" in self.__dict__

    @property
    def model(self) -> Model | None:
        """The model that the index was built with; None for BM25 only."""
        if not (self._given is None or isinstance(self._given, str | Path)):
            return self._given
        found = self.searcher().model
        return cast("Model | None", found.full() if isinstance(found, Remembered) else found)

    @override
    def _answers(self, queries: Sequence[str], options: SearchOptions) -> list[Answer]:
        return [self.answer(text, options)[0] for text in queries]

    def answer(self, query: str, options: SearchOptions) -> tuple[Answer, Index]:
        """The answer to a query, and the commit that it is of.

        Raises:
            ShardGone: a shard of a fleet gives no answer, and partial answers are not allowed.
        """
        workflow = cast("Workflow", options.workflow)

        def found(searcher: Searcher) -> tuple[Answer, Index]:
            with self.watched() as missing:
                answer = searcher.search(query, options.k, workflow=workflow, explain=options.explain)
            return replace(answer, missing=tuple(sorted(missing))), searcher.index

        return self._of_one_commit(found, options)

    def watched(self, whole: bool = False) -> AbstractContextManager[set[int]]:
        """Limit the time for shards elsewhere in the block; see `Fleet.watched`."""
        return nullcontext(set[int]()) if self._fleet is None else self._fleet.watched(whole)

    def silent(self) -> tuple[set[int], bool]:
        """The shards elsewhere that do not answer at the moment, and whether searches answer without them."""
        missing = set[int]() if self._fleet is None else self._fleet.silent(self.index)
        return missing, self._fleet is not None and self._fleet.partial and missing < {
            *shard_starts(self.index)
        }

    def _of_one_commit(self, search: Callable[[Searcher], Found], options: SearchOptions) -> Found:
        """Search, again if a commit came between two questions to the shards."""
        try:
            return search(self.searcher(options))
        except CommitMoved:
            self.refresh()
        return search(self.searcher(options))

    @with_names(RunKeywords)
    def run(self, queries: Mapping[str, str], k: int = DEEP, **asked: Unpack[RunKeywords]) -> Run:
        """Rank documents for many queries (id to text); `asked` as for `search`, except `explain`."""
        options = options_of(k, asked, RunKeywords)
        workflow = cast("Workflow", options.workflow)

        def found(searcher: Searcher) -> Run:
            with self.watched(whole=True):
                return searcher.run(queries, k, workflow=workflow)

        return self._of_one_commit(found, options)

    @with_names(RunKeywords)
    def evaluate(
        self,
        collection: Collection | str | Path,
        measures: str | Sequence[str] = MEASURES,
        *,
        split: str | None = None,
        k: int | None = None,
        **asked: Unpack[RunKeywords],
    ) -> Report:
        """Search for a collection's queries and measure the results against its judgements.

        Args:
            collection: a collection with queries and judgements, or its location.
            measures: names of measures.
            split: the split of the judgements; optional if there is one split, or one called "test".
            k: documents found for each query; by default, as many as the measures need.
            asked: as for `run`.

        Raises:
            ConfigError: a measure is unknown, or the split must be named.
            DataError: the collection cannot be read, or does not have the split.
        """
        from counterpoint.data import open_collection
        from counterpoint.measure import NOTHING_JUDGED, depth_of, evaluate, nothing_judged
        from counterpoint.measure.judgements import only_split

        names = measures.split() if isinstance(measures, str) else measures
        depth = depth_of(names, DEEP) if k is None else k
        options_of(depth, asked, RunKeywords)  # report a wrong name before anything is read
        found = open_collection(collection) if isinstance(collection, str | Path) else collection
        named = split or only_split(found)
        run, qrels = self.run(found.queries(named), depth, **asked), found.qrels(named)
        if nothing_judged(run, qrels):
            warnings.warn(NOTHING_JUDGED, stacklevel=2)
        return evaluate(run, qrels, names)

    @override
    def document(self, name: str) -> dict[str, Any]:
        """A document as it was indexed: its `id`, `title`, `text` and `metadata`.

        Raises:
            ConfigError: no document has this id.
        """
        position = self.index.position_of(name)
        if position is None:
            raise ConfigError(f"there is no document {name!r} in the index")
        found = self.index.document(position)
        return {
            "id": found.id,
            "title": found.title,
            "text": found.text,
            "metadata": dict(found.metadata),
        }

    @override
    def refresh(self) -> bool:
        """Switch to the last commit; return whether it is a new one.

        Raises:
            ArtifactError: the index is missing or damaged; this object stays unchanged.
        """
        with self._lock:  # so that of two threads the slower one does not go back to an older commit
            now = self.index.refreshed()
            if now is self.index:
                return False
            now = self._over(now)
            searcher = vars(self).pop("_with_model", None)
            if searcher is not None and now.manifest.model == self.index.manifest.model:
                vars(self)["_with_model"] = Searcher(now, searcher.model)
            self.index, self._last = now, (None, None)
        return True

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

    def info(self) -> dict[str, Any]:
        """Contents of the index, its disk usage, and the drift of its fit; see `Index.info`."""
        return self.index.info()

    @property
    def longer_than_model(self) -> int | None:
        """Number of documents (or passages) longer than the model reads; only BM25 sees their ends.

        None if it was not counted: without a model, or in an index of an older version.
        """
        return self.index.manifest.report.get("longer")

    @property
    def bytes(self) -> int:
        """Disk usage in bytes."""
        return self.index.disk_usage()["bytes"]

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        name = (self.index.manifest.model or {}).get("name")
        return f"OpenIndex({str(self.index.folder)!r}, {len(self):,} documents, model={name!r})"

    def close(self) -> None:
        """Close the files of the index."""
        self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_index(
    path: str | Path,
    model: Model | str | Path | None = None,
    backend: Backend = BACKEND,
    cached: int = CACHED_QUERIES,
) -> OpenIndex:
    """Open an index to search it, with the model, gate and search settings that it was built with.

    Args:
        path: folder of the index, or the address of a server, such as "http://localhost:8000/notes". An
            address gives a `counterpoint.library.remote.RemoteIndex`, which has most of its calls.
        model: the model, or its new location if it moved.
        backend: what encodes queries: "auto", "int8" (8-bit integers), "onnx" (float32) or "torch".
        cached: number of queries whose vectors are cached; 0 for none.

    Raises:
        ArtifactError: there is no index, or it is unfinished, damaged or of another version.
        ConfigError: the server has no such index.
    """
    if is_address(path):
        return cast(OpenIndex, RemoteIndex(str(path)))
    return OpenIndex(path, model, backend, cached)
