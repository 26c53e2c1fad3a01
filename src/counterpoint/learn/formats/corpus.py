"""The texts for data sets that contain ids."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from counterpoint.data import ReadPolicy, open_collection, read_queries
from counterpoint.errors import DataError
from counterpoint.files import sha256_file
from counterpoint.learn.formats.rows import Row, rows

__all__ = ["Corpus", "Place", "files_in", "provenance_of", "read_corpus"]

Place = str | Path | Sequence[Path]
"""Where texts are: the name of a source, or the files of a table."""


@dataclass(frozen=True)
class Corpus:
    """Texts by id, all in memory.

    Attributes:
        queries: id to text.
        documents: id to title and text.
        files: the files that were read.
    """

    queries: Mapping[str, str]
    documents: Mapping[str, str]
    files: tuple[Path, ...]

    def query(self, value: object, row: Row) -> str:
        """The id of a query, which must have a text.

        Raises:
            DataError: it has none. The message names file and line.
        """
        return _known(self.queries, "query", row.id(value), row)

    def document(self, value: object, row: Row) -> str:
        """The id of a document, as `query`."""
        return _known(self.documents, "document", row.id(value), row)


def read_corpus(documents: Place, queries: Place | None = None, policy: ReadPolicy | None = None) -> Corpus:
    """Read all texts.

    Args:
        documents: a source for `open_collection`, or tables with the columns `document_id` (or `_id`, `id`)
            and `text` (or `document`), and optionally `title`. Tables are a Parquet file, a folder of such
            files, or a list of Parquet or JSON-lines files.
        queries: a file of queries, or tables with `query_id` and `text` (or `query`). None for the
            collection's own queries.
        policy: how to handle bad input.

    Raises:
        DataError: something cannot be read.
    """
    files = files_in(documents)
    if _is_table(documents):
        texts, own = _table(files, "document"), {}
    else:
        collection = open_collection(cast(str | Path, documents), policy=policy, passage_words=None)
        texts = {sys.intern(document.id): document.full_text for document in collection.documents()}
        own = collection.queries() if queries is None else {}
    if queries is not None:
        files += (tables := files_in(queries))
        own = _table(tables, "query") if _is_table(queries) else read_queries(cast(str, queries), policy)
    if not own:
        raise DataError(f"{documents}: has no queries; name their file with queries=")
    return Corpus(own, texts, tuple(files))


def files_in(source: Place) -> list[Path]:
    """The text files of a source, sorted. Empty if the source is not a path, such as `ir_datasets:ID`."""
    if not isinstance(source, str | Path):
        return list(source)
    path = Path(source)
    if path.is_file():
        return [path]
    found = [*path.glob("corpus.jsonl*"), *path.glob("queries.jsonl*"), *path.glob("*.parquet")]
    return sorted(file for file in found if file.is_file())


def provenance_of(
    format: str, source: str | Path, files: Iterable[Path], **facts: object
) -> dict[str, object]:
    """How a training set was read, and the SHA-256 of its files."""
    hashed = [{"file": file.as_posix(), "sha256": sha256_file(file)} for file in files]
    return {"format": format, "source": str(source), "files": hashed, **facts}


def _is_table(source: Place) -> bool:
    if not isinstance(source, str | Path):
        return True
    path = Path(source)
    return path.suffix == ".parquet" or (path.is_dir() and any(path.glob("*.parquet")))


def _table(files: Iterable[Path], what: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for row in (row for file in files for row in rows(file)):
        id_ = row.id(row.take(f"{what}_id", "_id", "id"))
        text, title = row.text(row.take("text", what)), row.text(row.value.get("title") or "")
        if id_ in texts:
            raise row.fault(f"duplicate id {id_!r}; give every {what} its own")
        texts[sys.intern(id_)] = f"{title} {text}" if title else text
    return texts


def _known(texts: Mapping[str, str], what: str, id_: str, row: Row) -> str:
    if id_ not in texts:
        raise row.fault(f"{what} {id_!r} has no text; is this the right set of {what} texts?")
    return sys.intern(id_)  # one object per id, however many lines contain it
