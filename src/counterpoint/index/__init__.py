"""The index: documents, vectors and postings in one folder, searched exactly, on numpy alone."""

from counterpoint.index.analysis import Analyzer
from counterpoint.index.build import IndexSettings, TextModel, VectorSet, build_index
from counterpoint.index.codec import CodecName
from counterpoint.index.index import Index
from counterpoint.index.lexical import Lexical, LexicalSettings, TermMatch
from counterpoint.index.manifest import Manifest
from counterpoint.index.segment import AnnName, SetLayout

__all__ = [
    "Analyzer",
    "AnnName",
    "CodecName",
    "Index",
    "IndexSettings",
    "Lexical",
    "LexicalSettings",
    "Manifest",
    "SetLayout",
    "TermMatch",
    "TextModel",
    "VectorSet",
    "build_index",
]
