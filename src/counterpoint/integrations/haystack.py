"""`HaystackRetriever`: an index as a component of Haystack's pipelines."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, final

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.integrations.haystack_filters import condition_of
from counterpoint.integrations.retrieval import metadata_of, opened
from counterpoint.library.keywords import RunKeywords, with_names
from counterpoint.library.options import SearchOptions
from counterpoint.library.searchable import Searchable, options_of

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise MissingExtraError("a component for Haystack", package="haystack-ai", extra="haystack") from error

__all__ = ["HaystackRetriever"]


@final
@component
class HaystackRetriever:
    """An index as a retriever of Haystack.

    Documents have the id, the text and the score of a hit. Their `meta` has the document's metadata, `title`
    and, for a passage, `parent` and `start`; these names hide metadata of the same name.

    Args:
        index: an open index, its folder, or the address of a server. A folder or an address is opened by
            `warm_up`, or by the first query.
        k: number of documents.
        asked: other fields of `SearchOptions`: workflow, weights, adapt, fusion, feedback, exhaustive,
            probes, where.

    Raises:
        ConfigError: an option does not exist.

    Example:
        >>> import counterpoint as cp
        >>> from tempfile import mkdtemp
        >>> notes = cp.index(["A whale is a mammal."], mkdtemp() + "/notes", model=None)
        >>> (found,) = HaystackRetriever(notes, k=3).run("whale")["documents"]
        >>> found.content
        'A whale is a mammal.'
    """

    @with_names(RunKeywords)
    def __init__(
        self, index: Searchable | str | Path, k: int = SearchOptions.k, **asked: Unpack[RunKeywords]
    ):
        self.index = index
        self.options = options_of(k, asked, RunKeywords)
        self._opened = index if isinstance(index, Searchable) else None

    def warm_up(self) -> None:
        """Open the index.

        Raises:
            ConfigError: it is no index, or the server has no such index.
            ArtifactError: there is no index, or it is unfinished, damaged or of another version.
        """
        self._searchable()

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Search for the best documents.

        Args:
            query: the text to search for.
            filters: a filter on metadata; it narrows `where` down. A document without the field meets no
                comparison with a value.
            top_k: number of documents; None for `k`.

        Raises:
            ConfigError: the query is empty, or an option or a filter is invalid.
        """
        options = self.options if top_k is None else replace(self.options, k=top_k)
        if filters:
            narrowed = str(condition_of(filters))
            where = narrowed if options.where is None else f"({options.where}) AND {narrowed}"
            options = replace(options, where=where)
        return {
            "documents": [
                Document(id=hit.id, content=hit.text, meta=metadata_of(hit), score=hit.score)
                for hit in self._searchable().search(query, **vars(options))
            ]
        }

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """`run` in a thread."""
        return await asyncio.to_thread(self.run, query, filters, top_k)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain data, for pipelines in files.

        Raises:
            ConfigError: the index was given as an open index, which has no place that others can open.
        """
        if isinstance(self.index, Searchable):
            raise ConfigError("a pipeline with an open index cannot be written; give its path or address")
        asked = self.options.to_dict()
        del asked["explain"]
        return default_to_dict(self, index=str(self.index), **asked)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackRetriever:
        """The inverse of `to_dict`."""
        return default_from_dict(cls, data)

    def _searchable(self) -> Searchable:
        if self._opened is None:
            self._opened = opened(self.index)
        return self._opened
