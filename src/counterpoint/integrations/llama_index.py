"""`LlamaIndexRetriever`: an index as a retriever of LlamaIndex."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Unpack, final

from typing_extensions import override

from counterpoint.errors import MissingExtraError
from counterpoint.integrations.retrieval import metadata_of, opened
from counterpoint.library.keywords import RunKeywords, with_names
from counterpoint.library.options import SearchOptions
from counterpoint.library.searchable import Searchable, options_of

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingExtraError(
        "a retriever for LlamaIndex", package="llama-index-core", extra="llama-index"
    ) from error

__all__ = ["LlamaIndexRetriever"]


@final
class LlamaIndexRetriever(BaseRetriever):
    """An index as a retriever of LlamaIndex.

    Nodes have the id, the text and the score of a hit. Their metadata has the document's metadata, `title`
    and, for a passage, `parent` and `start`; these names hide metadata of the same name.

    Args:
        index: an open index, its folder, or the address of a server.
        k: number of documents.
        asked: other fields of `SearchOptions`: workflow, weights, adapt, fusion, feedback, exhaustive,
            probes, where.

    Raises:
        ConfigError: an option does not exist, it is no index, or the server has no such index.
        ArtifactError: there is no index, or it is unfinished, damaged or of another version.

    Example:
        >>> import counterpoint as cp
        >>> from tempfile import mkdtemp
        >>> notes = cp.index(["A whale is a mammal."], mkdtemp() + "/notes", model=None)
        >>> LlamaIndexRetriever(notes, k=3).retrieve("whale")[0].text
        'A whale is a mammal.'
    """

    @with_names(RunKeywords)
    def __init__(
        self, index: Searchable | str | Path, k: int = SearchOptions.k, **asked: Unpack[RunKeywords]
    ):
        self.options = options_of(k, asked, RunKeywords)
        self.index = opened(index)
        super().__init__()

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(id_=hit.id, text=hit.text, metadata=metadata_of(hit)), score=hit.score
            )
            for hit in self.index.search(query_bundle.query_str, **vars(self.options))
        ]

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
