"""Adapters to other libraries, each an optional extra. A name is imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
