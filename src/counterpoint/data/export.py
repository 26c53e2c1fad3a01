"""Write collections in the layouts of other toolkits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from counterpoint.data.collection import Collection
from counterpoint.data.output import check_layout, one_line, write_lines
from counterpoint.data.trec import write_qrels
from counterpoint.folders import FolderKind, publish_folder
from counterpoint.types import Document

__all__ = ["BEIR", "DocumentLayout", "write_beir", "write_colbert", "write_documents", "write_queries"]

BEIR = FolderKind("corpus.jsonl", ("queries.jsonl", "qrels/*.tsv"))
COLBERT = FolderKind("collection.tsv", ("document-ids.tsv", "queries.tsv", "query-ids.tsv"))
DocumentLayout = Literal["beir-jsonl", "pyserini", "tevatron", "msmarco"]


def write_beir(collection: Collection, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write a whole collection as a BEIR folder, atomically. Reading it gives the same collection.

    Raises:
        ArtifactError: the folder already exists, or could not be written.
        DataError: the collection could not be read.
    """
    with publish_folder(Path(folder), overwrite=overwrite, kind=BEIR) as target:
        write_documents(collection.documents(), target / "corpus.jsonl", layout="beir-jsonl")
        write_queries(collection.queries(), target / "queries.jsonl", collection.query_metadata())
        (target / "qrels").mkdir()
        for split in collection.splits:
            write_qrels(collection.qrels(split), target / "qrels" / f"{split}.tsv", layout="beir")


def write_documents(documents: Iterable[Document], path: str | Path, *, layout: DocumentLayout) -> None:
    """Write one document per line, packed if the name ends in `.gz`.

    `beir-jsonl` keeps everything. `pyserini` and `msmarco` have no title, so their text is `full_text`.
    `msmarco` replaces each run of white space with one space, and has no metadata.

    Raises:
        ArtifactError: the file could not be written.
        ConfigError: the layout is unknown.
        DataError: `msmarco` cannot represent an id.
    """
    check_layout(layout, DocumentLayout)
    write_lines(Path(path), (_line(document, layout) for document in documents))


def write_queries(
    queries: Mapping[str, str], path: str | Path, metadata: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    r"""Write queries: BEIR's `{_id, text}` for `.jsonl[.gz]`, else `id\ttext` (MS MARCO, ColBERT).

    BEIR's layout keeps metadata under the key `metadata`; the other has no place for them.

    Raises:
        ArtifactError: the file could not be written.
        DataError: the layout cannot represent an id.
    """
    path = Path(path)
    if ".jsonl" in path.suffixes:
        more = {id_: {"metadata": dict(facts)} for id_, facts in (metadata or {}).items()}
        rows = (_json({"_id": id_, "text": text} | more.get(id_, {})) for id_, text in queries.items())
        write_lines(path, rows)
    else:
        write_lines(path, (_row(one_line(id_, "a query id"), text) for id_, text in queries.items()))


def write_colbert(collection: Collection, folder: str | Path, *, overwrite: bool = False) -> None:
    r"""Write `collection.tsv` and `queries.tsv` for ColBERT, which numbers passages and queries from 0.

    `document-ids.tsv` and `query-ids.tsv` hold `number\tid`, to translate its rankings back.

    Raises:
        ArtifactError: the folder already exists, or could not be written.
        DataError: the collection could not be read.
    """
    with publish_folder(Path(folder), overwrite=overwrite, kind=COLBERT) as target:
        documents = enumerate(collection.documents())
        rows = (_row(str(n), found.text, *([found.title] if found.title else [])) for n, found in documents)
        write_lines(target / "collection.tsv", rows)
        ids = (one_line(found.id, "a document id") for found in collection.documents())
        write_lines(target / "document-ids.tsv", (f"{n}\t{id_}" for n, id_ in enumerate(ids)))
        queries = collection.queries()
        write_lines(target / "queries.tsv", (_row(str(n), text) for n, text in enumerate(queries.values())))
        ids = (one_line(id_, "a query id") for id_ in queries)
        write_lines(target / "query-ids.tsv", (f"{n}\t{id_}" for n, id_ in enumerate(ids)))


def _line(document: Document, layout: DocumentLayout) -> str:
    if layout == "msmarco":
        return _row(one_line(document.id, "a document id"), document.full_text)
    if layout == "pyserini":
        return _json({"id": document.id, "contents": document.full_text})
    if layout == "tevatron":
        return _json({"docid": document.id, "title": document.title, "text": document.text})
    record: dict[str, Any] = {"_id": document.id, "title": document.title, "text": document.text}
    if document.metadata:
        record["metadata"] = dict(document.metadata)
    if document.parent is not None:
        record |= {"parent": document.parent, "start": document.start}
    return _json(record)


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def _row(id_: str, *texts: str) -> str:
    """Join columns with tabs; white space inside a text becomes single spaces, because a row is one line."""
    return "\t".join([id_, *(" ".join(text.split()) for text in texts)])
