"""`counterpoint index`: read a source, encode it, write an index."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from counterpoint.cli.ahead import sized
from counterpoint.cli.complete import models
from counterpoint.cli.console import Json, emit, note
from counterpoint.cli.progress import loading, progress
from counterpoint.escapes import escaped
from counterpoint.library.options import DEFAULT_MODEL, BuildOptions

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
        str,
        typer.Option(
            help="Model name, model folder, or hub id; 'none' for BM25 alone.", autocompletion=models
        ),
    ] = DEFAULT_MODEL,
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
    from counterpoint.index import Index
    from counterpoint.library import prepare

    asked = BuildOptions(model, codec, gate, ann, lexical, analyzer, k1, b, passage_words, lenient, overwrite)
    with loading(model):
        build = prepare(source, output, asked)
    build = sized(build, source, whole=not passage_words)
    started = time.perf_counter()
    with progress("indexing", "documents", build.size) as update:
        build.run(update)
    seconds = time.perf_counter() - started
    note(build.report.summary(), *build.report.notes)
    with Index(output) as built:
        info = built.info()
    result = {
        "index": str(output), "documents": info["documents"], "bytes": info["bytes"],
        "bytes_per_document": info["bytes_per_document"], "seconds": round(seconds, 2), "model": model,
        "read": asdict(build.report),
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
