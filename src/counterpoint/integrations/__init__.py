"""Adapters to other libraries, each an optional extra. A name is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterpoint.lazily import lazily

if TYPE_CHECKING:
    from counterpoint.integrations.haystack import HaystackRetriever
    from counterpoint.integrations.langchain import LangChainRetriever
    from counterpoint.integrations.llama_index import LlamaIndexRetriever
    from counterpoint.integrations.mcp import mcp_server
    from counterpoint.integrations.mteb import MtebEncoder, MtebSearch

__all__ = [
    "HaystackRetriever",
    "LangChainRetriever",
    "LlamaIndexRetriever",
    "MtebEncoder",
    "MtebSearch",
    "mcp_server",
]

_HOMES = {
    "haystack": ("HaystackRetriever",),
    "langchain": ("LangChainRetriever",),
    "llama_index": ("LlamaIndexRetriever",),
    "mcp": ("mcp_server",),
    "mteb": ("MtebEncoder", "MtebSearch"),
}


__getattr__ = lazily(__name__, _HOMES)


__dir__ = __all__.copy
