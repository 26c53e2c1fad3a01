"""What an index takes on disk: every byte of its folder counted once, by what it is for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from counterpoint.index.checked import BLOCKS
from counterpoint.index.database import CHECKS, DATABASE, PASSAGES
from counterpoint.index.manifest import NAME

if TYPE_CHECKING:
    from counterpoint.index.index import Index
    from counterpoint.index.store import SetLayout

__all__ = ["account_of"]

PURPOSES: Mapping[str, str] = MappingProxyType(
    {
        "values": "vectors",
        "scales": "vectors",
        "ids": "ids",
        "ranks": "ids",
        "lengths": "offsets",
        "offsets": "offsets",
        "vocabulary": "vocabulary",
        "frequencies": "vocabulary",
        "postings": "postings",
        "starts": "postings",
        "hnsw": "graph",
    }
)
"""Of a vector set's file, by the word behind its set's name."""


def account_of(index: Index) -> dict[str, Any]:
    """Sizes by purpose and by vector set, and how the index compares with the plain text of its documents.

    `documents` counts a document that was cut once, `passages` all that can be found. `text_bytes` are those
    of titles and texts in UTF-8. `factor_over_text` is everything that is not text (the whole index but the
    documents' database) over them; None where there is no text.
    """
    purposes: dict[str, int] = {}
    for path in sorted(index.folder.rglob("*")):
        if path.is_file():
            purpose = _purpose(path.relative_to(index.folder), index.layouts)
            purposes[purpose] = purposes.get(purpose, 0) + path.stat().st_size
    total, documents = sum(purposes.values()), _whole(index)
    text = sum(segment.text_bytes() for segment in index.segments)
    beside = total - purposes.get("documents", 0)
    return {
        "documents": documents,
        "passages": len(index),
        "bytes": total,
        "bytes_per_document": total / documents,
        "bytes_by_purpose": purposes,
        "text_bytes": text,
        "factor_over_text": beside / text if text else None,
        "sets": {name: _set(index, name, purposes) for name in index.layouts},
        "created": index.manifest.created,
        "software": index.manifest.software,
        "model": index.manifest.model,
        "lexical": index.manifest.settings["lexical"],
        "search": index.manifest.settings["search"],
    }


def _whole(index: Index) -> int:
    """Number of documents, one that was cut into passages counted once."""
    cut = [segment.parents() for segment in index.segments]
    return len(index) + sum(parents - passages for parents, passages in cut)


def _set(index: Index, name: str, purposes: Mapping[str, int]) -> dict[str, Any]:
    """One vector set; `bytes` are those of all its files.

    `vectors` are as many as the model made, of which a static set stores none: `stored_ids` says how many ids
    it keeps, each once a document.
    """
    layout = index.layouts[name]
    vectors = sum(entry.vectors[name] for entry in index.manifest.segments)
    ids = sum(len(segment.static[name].ranks) for segment in index.segments) if layout.static else None
    size = sum(size for purpose, size in purposes.items() if purpose.endswith(f": {name}"))
    return {
        "dim": layout.dim,
        "codec": None if layout.static else layout.codec,
        "static": layout.static,
        "stored_ids": ids,
        "vectors": vectors,
        "vectors_per_document": vectors / _whole(index),
        "bytes": size,
        "bytes_per_vector": size / max(vectors, 1),
        "distinct_ids": index.distinct_ids(name) if layout.ids else None,
    }


def _purpose(path: Path, layouts: Mapping[str, SetLayout]) -> str:
    """What a file of the index is for."""
    if path.name == NAME:
        return "manifest"
    if path.parts[0] == "lexical":
        return "lexical"
    if path.name in (BLOCKS, CHECKS):
        return "checksums"
    if path.name in (DATABASE, PASSAGES):
        return "documents"
    name, _, kind = path.name.removesuffix(".npy").partition(".")
    if path.parts[0] == "segments" and name in layouts and kind in PURPOSES:
        return f"{PURPOSES[kind]}: {name}"
    return "other"
