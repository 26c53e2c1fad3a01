"""`counterpoint index`: read and encode a source, and write an index."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from counterpoint.cli import options as shared
from counterpoint.cli.ahead import sized
from counterpoint.cli.complete import models
from counterpoint.cli.console import Json, emit, note
from counterpoint.cli.dry_index import tell, told
from counterpoint.cli.progress import loading, progress
from counterpoint.errors import ConfigError
from counterpoint.escapes import escaped
from counterpoint.index import CodecChoice
from counterpoint.library.options import AUTO_MODEL, BuildOptions

if TYPE_CHECKING:
    from counterpoint.library import Build

__all__ = ["index"]


def index(
    source: shared.Source,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the index to this folder")
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="Choose a model name, folder or hub id; none: BM25 only", autocompletion=models),
    ] = AUTO_MODEL,
    codec: Annotated[
        CodecChoice | None, typer.Option(help="Choose how vectors are stored (default: the model's own)")
    ] = None,
    gate: Annotated[
        float | None, typer.Option(min=0.0, help="Prune vectors with a gate weight up to this (default: 0)")
    ] = None,
    ann: Annotated[
        Literal["hnsw"] | None, typer.Option(help="Approximate search over pooled vectors (needs faiss)")
    ] = None,
    pool_factor: Annotated[
        float | None,
        typer.Option(min=1.0, help="Divide the number of vectors by this, by token pooling (default: 1)"),
    ] = None,
    lexical: Annotated[
        bool | None, typer.Option(help="Keep BM25 postings (default: yes, or as in the export)")
    ] = None,
    analyzer: Annotated[
        Literal["english", "english-long", "simple", "none"] | None,
        typer.Option(help="Choose BM25's tokenisation (default: the model's own)"),
    ] = None,
    identifiers: Annotated[
        bool | None, typer.Option(help="Split identifiers for BM25, and keep them whole as well")
    ] = None,
    k1: Annotated[
        float | None, typer.Option("--k1", help="Set BM25's term-frequency saturation (default: 0.9)")
    ] = None,
    b: Annotated[
        float | None, typer.Option("--b", help="Set BM25's length normalisation, 0 to 1 (default: 0.4)")
    ] = None,
    passage_words: shared.PassageWords = None,
    id: shared.IdField = None,
    title: shared.TitleField = None,
    text: shared.TextField = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", help="Keep metadata fields, as in year:int,lang:str (repeatable)"),
    ] = None,
    include: shared.Include = None,
    exclude: shared.Exclude = None,
    gitignore: shared.Gitignore = True,
    lenient: shared.Lenient = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing index")] = False,
    resume: Annotated[bool, typer.Option(help="Continue an unfinished build in the same folder")] = False,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Encode in this many processes, each with the model (default: 1)"),
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="Encode on this Ray cluster; local: start one on this machine")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(min=1, help="Divide the index into this many shards (default: 1)")
    ] = None,
    vectors: Annotated[
        bool | None, typer.Option(help="Take vectors from an export instead of encoding")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only read, and print what would be indexed")
    ] = False,
    json: Json = False,
) -> None:
    """Build an index of SOURCE.

    --model auto is minilm, or the model of an export. --codec auto chooses by the documents. --gate also
    applies to router weights. --ann hnsw searches along a graph instead of all vectors. --pool-factor 1.1
    replaces the most similar vectors of a document by their mean, except in sets with exact matching.

    --analyzer defaults to english if there is no model. --identifiers indexes is_empty and checkIfEmpty as
    one word and as several; it is on by default, or as in the export.

    SOURCE may be .jsonl, .csv, .tsv, .json or any text. --metadata fields with a type can be used in
    conditions (--where). Without --passage-words, files are cut into passages and documents of a collection
    are not. --vectors is the default for an export, unless it was stored in 1, 2 or 4 bits.
    """
    chosen = BuildOptions(
        model=model, codec=codec, gate=gate, ann=ann, pool_factor=pool_factor, lexical=lexical,
        analyzer=analyzer, identifiers=identifiers, k1=k1, b=b, passage_words=passage_words, lenient=lenient,
        overwrite=overwrite, resume=resume, processes=processes, ray=ray, shards=shards, id=id, title=title,
        text=text, metadata=metadata, include=include, exclude=exclude, gitignore=gitignore, vectors=vectors,
    )  # fmt: skip
    if dry_run:
        tell(source, chosen, json)
    elif output is None:
        raise ConfigError("no folder to write; name it with --output (-o), or only look with --dry-run")
    else:
        _build(source, output, chosen, json)


def _run(build: Build) -> None:
    """Run a build. Note what an unfinished build has kept, before the build and if it fails."""
    from counterpoint.index import kept_count, kept_text

    kept = kept_text(build.folder)
    finished = not build.overwrite and (build.folder / "manifest.json").exists()  # which the build refuses
    if build.resume and (kept or not finished):
        note(escaped(kept or f"{build.folder}: no unfinished build; building from the start"))
    elif kept:
        note(escaped(f"{build.folder}: discarding what an unfinished build encoded; --resume would keep it"))
    try:
        read = build.reading.report
        units = "documents" if read.passages == read.documents else "passages"
        begun = kept_count(build.folder) if build.resume else 0
        with progress("indexing", units, build.size, begun) as update:
            build.run(update)
    except BaseException:
        if kept := kept_text(build.folder):
            note(escaped(kept))
        raise


def _build(source: str, output: Path, chosen: BuildOptions, json: bool) -> None:
    from counterpoint.index import Index
    from counterpoint.index.disk_usage import auto_text, built_text, counted_text, cut_text, queries_text
    from counterpoint.index.sharding import empty_text
    from counterpoint.library.building import model_name, prepare

    named = model_name(source, chosen)
    with loading(named):
        build = prepare(source, output, chosen)
    build = sized(build, source, whole=not chosen.passage_words)
    report, decided = build.reading.report, build.reading.decided
    note(*decided, *([build.told] if build.told else []))
    _run(build)
    note(report.summary(), *told(report, decided))
    with Index(output) as built:
        info = built.info()
    few = empty_text(info["shards"], info["documents"]) if info["shards"] > 1 else None
    note(*filter(None, (auto_text(info), queries_text(info), cut_text(info), few)))
    result = {
        "index": str(output), "documents": info["documents"], "passages": info["passages"],
        "longer_than_model": info["longer_than_model"], "bytes": info["bytes"],
        "bytes_per_document": info["bytes_per_document"], "auto_codec": info["auto_codec"], **info["built"],
        "model": "none" if named is None else named, "read": asdict(report),
    }  # fmt: skip
    emit(
        result,
        lambda: (
            f"{counted_text(info)} in {info['built']['seconds']:.1f} s, {info['bytes'] / 2**20:.1f} MiB "
            f"({info['bytes_per_document']:,.0f} bytes per document)\n{built_text(info)}\n"
            f'Search it with: counterpoint search {escaped(str(output))} "your question" --explain'
        ),
        json,
    )
