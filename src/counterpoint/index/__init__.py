"""The index: documents, vectors and postings in one folder, searched exactly, on numpy alone."""

from counterpoint.index.analysis import Analyzer
from counterpoint.index.build import build_index, keep_search, remove_index
from counterpoint.index.codec import CodecName
from counterpoint.index.index import Index
from counterpoint.index.lexical import Lexical, LexicalSettings, TermMatch
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
from counterpoint.index.settings import IndexSettings, TextModel, VectorSet
from counterpoint.index.store import AnnName, SetLayout

__all__ = [
    "Analyzer",
    "AnnName",
    "BM25Vectors",
    "CodecName",
    "Index",
    "IndexSettings",
    "Lexical",
    "LexicalSettings",
    "Manifest",
    "SetLayout",
    "TermMatch",
    "TermStatistics",
    "TextModel",
    "VectorSet",
    "build_index",
    "keep_search",
    "project_terms",
    "projection_variance",
    "remove_index",
    "saturation",
    "term_id",
    "term_signs",
]
