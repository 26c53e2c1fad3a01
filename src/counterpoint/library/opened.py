"""`OpenIndex`: an index with its model and its settings, ready to answer."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, Unpack, cast, final, overload

from counterpoint.index import Index
from counterpoint.library.asked import settings_of
from counterpoint.library.changeable import Changeable
from counterpoint.library.keywords import (
    RunKeywords,
    SearchKeywords,
    check_keywords,
    with_names,
)
from counterpoint.library.options import BACKEND, CACHED_QUERIES, Backend, SearchOptions
from counterpoint.library.remembered import Remembered
from counterpoint.library.stored import encoder_of
from counterpoint.search import LEXICAL, Searcher

if TYPE_CHECKING:
    from counterpoint.data import Collection
    from counterpoint.measure import Report
    from counterpoint.model import Model
    from counterpoint.search import Answer, Run, Workflow

__all__ = ["OpenIndex", "open_index"]


@final
class OpenIndex(Changeable):
    """An index that answers, with the model and the search settings that it remembers.

    What encodes queries is loaded when it is first needed; BM25 alone needs none. Vectors of the last queries
    are kept, unless a model that was handed over as an object encodes them: its owner may change it.

    Args:
        folder: an index that `counterpoint index` or `counterpoint.index` wrote.
        model: the model, or where it is now, if not where it was.
        backend: what encodes queries: "auto", "onnx" or "torch" (see `counterpoint.library.options.Backend`).
        cached: how many queries' vectors are kept; 0 for none.

    Raises:
        ArtifactError: no index there, an unfinished or damaged one, or another version's.
    """

    def __init__(
        self,
        folder: str | Path,
        model: Model | str | Path | None = None,
        backend: Backend = BACKEND,
        cached: int = CACHED_QUERIES,
    ):
        self.index = Index(folder)
        self._given, self._lock = model, Lock()
        self._backend: Backend = backend
        self._cached = cached
        self._last: tuple[SearchOptions | None, Searcher | None] = None, None

    @cached_property
    def _with_model(self) -> Searcher:
        found = encoder_of(self.index, self._given, self._backend)
        return Searcher(self.index, found if found is self._given else Remembered(found, self._cached))

    def searcher(self, options: SearchOptions | None = None) -> Searcher:
        """What searches by these options.

        Raises:
            ConfigError: the index cannot be searched so.
            ArtifactError: the model is not there, or is not the one that the index was built with.
        """
        options = options or SearchOptions()
        with (
            self._lock
        ):  # reading settings takes as long as a search by BM25, and most searches have the same
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
        """The model that the index was built with; None for BM25 alone."""
        if not (self._given is None or isinstance(self._given, str | Path)):
            return self._given
        found = self.searcher().model
        return cast("Model | None", found.full() if isinstance(found, Remembered) else found)

    @overload
    def search(self, query: str, k: int = ..., **asked: Unpack[SearchKeywords]) -> Answer: ...
    @overload
    def search(
        self, query: list[str] | tuple[str, ...], k: int = ..., **asked: Unpack[SearchKeywords]
    ) -> list[Answer]: ...
    @with_names(SearchKeywords)
    def search(
        self,
        query: str | list[str] | tuple[str, ...],
        k: int = SearchOptions.k,
        **asked: Unpack[SearchKeywords],
    ) -> Answer | list[Answer]:
        """The best documents for a query, or for each of several.

        Args:
            query: one text, or a list of them.
            k: how many documents.
            asked: other fields of `SearchOptions`: workflow, weights, fusion, feedback, exhaustive, probes,
                where, explain.

        Raises:
            ConfigError: a query is empty, or something asked for does not exist or cannot be.
        """
        options = _options(k, asked, SearchKeywords)
        searcher = self.searcher(options)

        def one(text: str) -> Answer:
            workflow = cast("Workflow", options.workflow)
            return searcher.search(text, options.k, workflow=workflow, explain=options.explain)

        return one(query) if isinstance(query, str) else [one(text) for text in query]

    @with_names(RunKeywords)
    def run(self, queries: Mapping[str, str], k: int = 1000, **asked: Unpack[RunKeywords]) -> Run:
        """Rank documents for many queries, id to text; `asked` as `search` takes it, but for `explain`."""
        options = _options(k, asked, RunKeywords)
        return self.searcher(options).run(queries, k, workflow=cast("Workflow", options.workflow))

    @with_names(RunKeywords)
    def evaluate(
        self,
        collection: Collection | str | Path,
        measures: str | Sequence[str] = "nDCG@10 R@100",
        *,
        split: str | None = None,
        k: int = 1000,
        **asked: Unpack[RunKeywords],
    ) -> Report:
        """Search with a collection's queries and measure what is found by its judgements.

        Args:
            collection: with queries and judgements, or where it is.
            measures: their names.
            split: which judgements; may be left out where there is one split, or one called "test".
            k: documents kept for each query.
            asked: as `run` takes it.

        Raises:
            ConfigError: no such measure, or it is not clear which split is meant.
            DataError: the collection cannot be read, or has no such split.
        """
        from counterpoint.data import open_collection
        from counterpoint.measure import evaluate
        from counterpoint.measure.judgements import only_split

        _options(k, asked, RunKeywords)  # a wrong name is said before anything is read
        found = open_collection(collection) if isinstance(collection, str | Path) else collection
        named = split or only_split(found)
        return evaluate(self.run(found.queries(named), k, **asked), found.qrels(named), measures)

    def refresh(self) -> bool:
        """Answer from the last commit from now on; whether that is another than before.

        Raises:
            ArtifactError: the index is gone or damaged; this one goes on as it was.
        """
        now = self.index.refreshed()
        if now is self.index:
            return False
        with self._lock:
            searcher = vars(self).pop("_with_model", None)
            same = now.manifest.model == self.index.manifest.model
            if searcher is not None and same:
                vars(self)["_with_model"] = Searcher(now, searcher.model)
            self.index, self._last = now, (None, None)
        return True

    def info(self) -> dict[str, Any]:
        """What the index is made of, and how many bytes of what."""
        return self.index.info()

    @property
    def longer_than_model(self) -> int | None:
        """How many documents (or passages) are longer than the model reads; only BM25 sees their ends.

        None where nobody counted: without a model, or in an index of an earlier version.
        """
        return self.index.manifest.report.get("longer")

    @property
    def bytes(self) -> int:
        """Size on disk."""
        return self.index.info()["bytes"]

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        name = (self.index.manifest.model or {}).get("name")
        return f"OpenIndex({str(self.index.folder)!r}, {len(self):,} documents, model={name!r})"

    def close(self) -> None:
        """Close its files."""
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
    """Open an index for searching; its model, gate and search settings are those that it was built with.

    Args:
        path: its folder.
        model: where the model is now, if not where it was.
        backend: what encodes queries: "auto", "onnx" or "torch".
        cached: how many queries' vectors are kept; 0 for none.

    Raises:
        ArtifactError: no index there, an unfinished or damaged one, or another version's.
    """
    return OpenIndex(path, model, backend, cached)


def _options(k: int, asked: Mapping[str, Any], keywords: type) -> SearchOptions:
    check_keywords(asked, "k", *keywords.__annotations__)
    return SearchOptions(k=k, **asked)
