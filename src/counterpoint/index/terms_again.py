"""Recreate BM25 from texts: for damaged files, or for files in which an earlier version kept scores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from counterpoint.index.lexical import LexicalSettings
from counterpoint.index.lexical_builder import LexicalBuilder
from counterpoint.index.manifest import Manifest
from counterpoint.index.ours import mark, new_name
from counterpoint.types import Document

__all__ = ["terms_again"]


def terms_again(folder: Path, manifest: Manifest, documents: Iterable[Document]) -> str:
    """Write BM25 of some documents into a new folder of an index; return the folder."""
    name = f"lexical/{new_name()}"
    mark(folder / name)
    builder = LexicalBuilder(LexicalSettings.from_dict(manifest.settings["lexical"]), folder / name)
    for document in documents:
        builder.add(document.full_text)
    builder.write(folder / name)
    return name
