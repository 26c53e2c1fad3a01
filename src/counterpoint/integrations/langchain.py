"""`LangChainRetriever`: an index as a retriever of LangChain."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from typing_extensions import override

from counterpoint.errors import MissingExtraError
from counterpoint.index.field import Expression
from counterpoint.integrations.retrieval import metadata_of, opened
from counterpoint.library.keywords import RunKeywords, check_keywords
from counterpoint.library.options import SearchOptions
from counterpoint.library.searchable import Searchable

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict
except ImportError as error:
    raise MissingExtraError(
        "a retriever for LangChain", package="langchain-core", extra="langchain"
    ) from error

__all__ = ["LangChainRetriever"]


@final
class LangChainRetriever(BaseRetriever):
    """An index as a retriever of LangChain.

    Documents have the id and the text of a hit. Their metadata has the document's metadata, `title`, `score`
    and, for a passage, `parent` and `start`; these names hide metadata of the same name.

    All options are fields, with the defaults of `SearchOptions`. `invoke` and `ainvoke` take them, too, for
    one query: `retriever.invoke("whales", k=3)`.

    Args:
        index: an open index, its folder, or the address of a server.
        options: the fields below, and those of `BaseRetriever`, such as `tags`.

    Raises:
        ValueError: an option has an invalid type.
        ConfigError: an option does not exist, it is no index, or the server has no such index.
        ArtifactError: there is no index, or it is unfinished, damaged or of another version.

    Example:
        >>> import counterpoint as cp
        >>> from tempfile import mkdtemp
        >>> notes = cp.index(["A whale is a mammal."], mkdtemp() + "/notes", model=None)
        >>> LangChainRetriever(notes, k=3).invoke("whale")[0].page_content
        'A whale is a mammal.'
    """

    model_config = ConfigDict(extra="forbid")

    index: Searchable
    k: int = SearchOptions.k
    workflow: str = SearchOptions.workflow
    weights: str | Mapping[str, float] | None = SearchOptions.weights
    adapt: bool | None = SearchOptions.adapt
    fusion: str | None = SearchOptions.fusion
    feedback: str | float | tuple[float, int] | None = SearchOptions.feedback
    exhaustive: bool = SearchOptions.exhaustive
    probes: int | None = SearchOptions.probes
    where: str | Expression | None = SearchOptions.where

    def __init__(self, index: Searchable | str | Path, **options: Any):
        check_keywords(options, *type(self).model_fields)
        super().__init__(**{**options, "index": opened(index)})

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **asked: Any
    ) -> list[Document]:
        return self._found(query, asked)

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **asked: Any
    ) -> list[Document]:
        return await asyncio.to_thread(self._found, query, asked)

    def _found(self, query: str, asked: Mapping[str, Any]) -> list[Document]:
        options = {name: getattr(self, name) for name in ("k", *RunKeywords.__annotations__)}
        return [
            Document(id=hit.id, page_content=hit.text, metadata={**metadata_of(hit), "score": hit.score})
            for hit in self.index.search(query, **{**options, **asked})
        ]
