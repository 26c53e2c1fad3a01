"""`counterpoint index`: read a source, encode it, write an index."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterpoint.cli.console import Json, emit, note, progress
from counterpoint.cli.options import remembered_name
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.data import ReadPolicy, ReadReport
    from counterpoint.types import Document

__all__ = ["index"]


def index(
    source: Annotated[
        str,
        typer.Argument(
            help="Folder of files, BEIR folder, .jsonl[.gz], .tsv[.gz], ir_datasets:ID or stdlib:",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.", show_default=False)],
    model: Annotated[
        str, typer.Option(help="Model name, model folder, or hub id; 'none' for BM25 alone.")
    ] = "minilm",
    codec: Annotated[
        Literal["int4", "int8", "float16", "float32"] | None,
        typer.Option(help="How vectors are stored; the model's own choice unless given.", show_default=False),
    ] = None,
    gate: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            show_default=False,
            help="Leave out rows that the gate or router weighs at or below this; those at 0 unless given.",
        ),
    ] = None,
    ann: Annotated[
        Literal["hnsw"] | None,
        typer.Option(
            help="Find documents by one vector a text approximately, along a graph (needs faiss), "
            "instead of looking at all of them.",
            show_default=False,
        ),
    ] = None,
    lexical: Annotated[bool, typer.Option(help="Keep BM25 postings.")] = True,
    analyzer: Annotated[
        Literal["english", "english-long", "simple", "none"] | None,
        typer.Option(
            help="How BM25 cuts text into terms; the model's own choice unless given, english where there is "
            "no model.",
            show_default=False,
        ),
    ] = None,
    k1: Annotated[
        float | None,
        typer.Option(
            "--k1",
            show_default=False,
            help="How late further occurrences of a term stop to count in BM25; 0.9 unless given.",
        ),
    ] = None,
    b: Annotated[
        float | None,
        typer.Option(
            "--b",
            show_default=False,
            help="How much a document's length counts in BM25, from 0 to 1; 0.4 unless given.",
        ),
    ] = None,
    passage_words: Annotated[
        int | None,
        typer.Option(
            min=0,
            show_default=False,
            help="Cut documents into passages of at most this many words; 0 keeps them whole. Unless given, "
            "files "
            "are cut and documents of a collection are not.",
        ),
    ] = None,
    lenient: Annotated[
        bool,
        typer.Option(
            help="Skip what cannot be read, keep the first of documents with one id, replace broken "
            "characters and cut absurd lengths, and say how often, instead of stopping."
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an index that is already there.")] = False,
    json: Json = False,
) -> None:
    """Build an index of SOURCE."""
    from counterpoint.data import ReadPolicy, ReadReport
    from counterpoint.errors import ConfigError
    from counterpoint.index import Index, IndexSettings, LexicalSettings, build_index

    given: dict[str, Any] = {"k1": k1, "b": b, "analyzer": analyzer}
    bm25 = LexicalSettings(**{name: value for name, value in given.items() if value is not None})
    if not lexical and any(value is not None for value in given.values()):
        raise ConfigError("--k1, --b and --analyzer are BM25's, and --no-lexical leaves it out")
    policy = ReadPolicy.lenient() if lenient else ReadPolicy()
    report = ReadReport()
    documents, size = _documents(source, policy, passage_words, report)
    encoder = None
    if model == "none" and gate is not None:
        raise ConfigError("--gate: BM25 alone has no gate; name a --model that has one")
    if model == "none" and codec is not None:
        raise ConfigError("--codec: BM25 alone has no vectors to store; name a --model that makes some")
    if model != "none":
        from counterpoint.model import load_model  # brings torch with it

        encoder = load_model(model) if gate is None else load_model(model).close_gates(gate)
    if encoder is None:
        settings = IndexSettings(lexical=bm25 if lexical else None, ann=ann)
    else:
        chosen = {} if codec is None else {"codec": codec}
        chosen |= {} if gate is None else {"gate": gate}
        kept = replace(bm25, analyzer=analyzer or encoder.analyzer) if lexical else None
        settings = encoder.index_settings(remembered_name(model, output), lexical=kept, ann=ann, **chosen)
    started = time.perf_counter()
    with progress("indexing", "documents", size) as update:
        build_index(documents, encoder, output, settings, overwrite=overwrite, on_progress=update)
    seconds = time.perf_counter() - started
    note(report.summary(), *report.notes)
    with Index(output) as built:
        info = built.info()
    result = {
        "index": str(output), "documents": info["documents"], "bytes": info["bytes"],
        "bytes_per_document": info["bytes_per_document"], "seconds": round(seconds, 2), "model": model,
        "read": asdict(report),
    }  # fmt: skip
    emit(
        result,
        lambda: (
            f"{info['documents']:,} documents in {seconds:.1f} s, {info['bytes'] / 2**20:.1f} MiB "
            f"({info['bytes_per_document']:,.0f} bytes a document)\n"
            f'Search it with: counterpoint search {escaped(str(output))} "your question" --explain'
        ),
        json,
    )


def _documents(
    source: str, policy: ReadPolicy, words: int | None, report: ReadReport
) -> tuple[Iterator[Document], int | None]:
    """The documents of a source, cut as asked, and their number where it is known."""
    from counterpoint.data import cut_passages, open_collection

    if words is None:
        collection = open_collection(source, policy=policy)
        return collection.documents(report), collection.size
    collection = open_collection(source, policy=policy, passage_words=None)
    whole = collection.documents(report)
    if words == 0:
        return whole, collection.size
    return (passage for document in whole for passage in cut_passages(document, max_words=words)), None
