"""`OpenIndex`: an index with its model and settings, ready to search."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast, final

from typing_extensions import override

from counterpoint.errors import ConfigError
from counterpoint.index import Index
from counterpoint.library.asked import changed, settings_of
from counterpoint.library.changeable import Changeable
from counterpoint.library.keywords import RunKeywords, with_names
from counterpoint.library.options import BACKEND, CACHED_QUERIES, DEEP, MEASURES, Backend, SearchOptions
from counterpoint.library.remembered import Remembered
from counterpoint.library.remote import RemoteIndex, is_address
from counterpoint.library.searchable import Searchable, options_of
from counterpoint.library.stored import encoder_of
from counterpoint.search import LEXICAL, Searcher
from counterpoint.search.fleet import shard_starts
from counterpoint.search.shard import CommitMoved

if TYPE_CHECKING:
    from counterpoint.data import Collection
    from counterpoint.measure import Report
    from counterpoint.model import Model
    from counterpoint.search import Answer, Run, Workflow
    from counterpoint.search.fleet import Fleet

__all__ = ["OpenIndex", "open_index"]

Found = TypeVar("Found")


@final
class OpenIndex(Searchable, Changeable):
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
