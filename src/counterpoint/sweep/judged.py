"""`Judged`: a collection with its queries and judgements in memory, and digests that identify its data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from counterpoint.data import Collection, open_collection
from counterpoint.files import sha256_file
from counterpoint.sweep.grid import CollectionEntry
from counterpoint.types import Qrels

__all__ = ["Judged", "digest", "open_judged"]


@final
@dataclass(frozen=True)
class Judged:
    """A collection with one split of its judgements.

    Attributes:
        entry: its entry in the grid.
        collection: the documents.
        queries: the judged queries, id to text.
        qrels: the judgements.
        documents: number of documents.
        digests: SHA-256 of the content of `corpus`, `queries` and `qrels`, independent of the files' format.
        files: SHA-256 of the files, by their path in the folder. Empty if the source is not a folder.
    """

    entry: CollectionEntry
    collection: Collection
    queries: Mapping[str, str]
    qrels: Qrels
    documents: int
    digests: Mapping[str, str]
    files: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The collection's entry in a report."""
        return {
            "name": self.entry.name,
            "source": self.entry.source,
            "split": self.entry.split,
            "relevant_from": self.entry.relevant_from,
            "documents": self.documents,
            "queries": len(self.queries),
            "content_sha256": dict(self.digests),
            "file_sha256": dict(self.files),
        }


def open_judged(entry: CollectionEntry) -> Judged:
    """Read a collection once.

    Raises:
        DataError: it cannot be read.
    """
    collection = open_collection(entry.source)
    queries, qrels = collection.queries(entry.split), collection.qrels(entry.split)
    corpus, documents = hashlib.sha256(), 0
    for document in collection.documents():
        corpus.update(_line([document.id, document.title, document.text, document.parent]))
        documents += 1
    return Judged(
        entry,
        collection,
        queries,
        qrels,
        documents,
        {"corpus": corpus.hexdigest(), "queries": digest(queries), "qrels": digest(qrels)},
        _files(Path(entry.source), entry.split),
    )


def digest(data: object) -> str:
    """SHA-256 of plain data, independent of the order of mappings."""
    return hashlib.sha256(_line(data)).hexdigest()


def _line(data: object) -> bytes:
    return json.dumps(data, sort_keys=True).encode() + b"\n"


def _files(folder: Path, split: str) -> dict[str, str]:
    names = ("corpus.jsonl", "queries.jsonl", f"qrels/{split}.tsv")
    paths = [folder / f"{name}{packed}" for name in names for packed in ("", ".gz")]
    return {path.relative_to(folder).as_posix(): sha256_file(path) for path in paths if path.is_file()}
