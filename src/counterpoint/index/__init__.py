"""The index: documents, vectors and postings in one folder, searched without torch."""

import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from counterpoint.lazily import lazily

if TYPE_CHECKING:
    from counterpoint.index.analysis import Analyzer
    from counterpoint.index.best import EVERY, Among, best_of
    from counterpoint.index.build import build_index, keep_search, kept_count, kept_text, remove_index
    from counterpoint.index.codec import CodecChoice, CodecName
    from counterpoint.index.index import Index
    from counterpoint.index.layout import AnnName, SetLayout
    from counterpoint.index.lexical import LEXICAL, Lexical, LexicalSettings, TermMatch
    from counterpoint.index.lexical_vectors import (
        BM25Vectors,
        TermStatistics,
        project_terms,
        projection_variance,
        saturation,
        term_id,
        term_signs,
    )
    from counterpoint.index.manifest import Manifest
    from counterpoint.index.settings import BuildModel, ExportsQueries, IndexSettings, TextModel, VectorSet
    from counterpoint.index.store import PROBES, Asked, Look, Store, VectorStore

__all__ = [
    "EVERY",
    "LEXICAL",
    "PROBES",
    "Among",
    "Analyzer",
    "AnnName",
    "Asked",
    "BM25Vectors",
    "BuildModel",
    "CodecChoice",
    "CodecName",
    "ExportsQueries",
    "Index",
    "IndexSettings",
    "Lexical",
    "LexicalSettings",
    "Look",
    "Manifest",
    "SetLayout",
    "Store",
    "TermMatch",
    "TermStatistics",
    "TextModel",
    "VectorSet",
    "VectorStore",
    "best_of",
    "build_index",
    "keep_search",
    "kept_count",
    "kept_text",
    "project_terms",
    "projection_variance",
    "remove_index",
    "saturation",
    "term_id",
    "term_signs",
]


_HOMES = {
    "analysis": ("Analyzer",),
    "best": ("EVERY", "Among", "best_of"),
    "build": ("build_index", "keep_search", "kept_count", "kept_text", "remove_index"),
    "codec": ("CodecChoice", "CodecName"),
    "index": ("Index",),
    "layout": ("AnnName", "SetLayout"),
    "lexical": ("LEXICAL", "Lexical", "LexicalSettings", "TermMatch"),
    "lexical_vectors": (
        "BM25Vectors",
        "TermStatistics",
        "project_terms",
        "projection_variance",
        "saturation",
        "term_id",
        "term_signs",
    ),
    "manifest": ("Manifest",),
    "settings": ("BuildModel", "ExportsQueries", "IndexSettings", "TextModel", "VectorSet"),
    "store": ("PROBES", "Asked", "Look", "Store", "VectorStore"),
}


class _Callable(ModuleType):
    """Makes the package callable: `counterpoint.index(source, path)` builds an index."""

    def __call__(self, source: Any, path: str | Path, *settings: Any, **more: Any) -> Any:
        """Build an index of a source and open it: `counterpoint.library.index`."""
        return import_module("counterpoint.library").index(source, path, *settings, **more)


sys.modules[__name__].__class__ = _Callable


_named = lazily(__name__, _HOMES)  # a search does not need the modules for building


def __getattr__(name: str) -> object:
    if name == "__signature__":  # shown by notebooks and `inspect`
        return signature(import_module("counterpoint.library").index)
    return _named(name)


__dir__ = __all__.copy
