"""`counterpoint export`: write an index's documents and vectors to a folder, or to a search engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.options import IndexFolder, Where, condition_of
from counterpoint.cli.progress import progress
from counterpoint.errors import ConfigError
from counterpoint.escapes import escaped
from counterpoint.exporters.names import ENGINES
from counterpoint.library.options import ExportOptions

__all__ = ["export"]


def export(
    index: IndexFolder,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this folder", show_default=False)
    ] = None,
    vectors: Annotated[
        bool, typer.Option(help="Write vectors as well (safetensors, float32)")
    ] = ExportOptions.vectors,
    where: Where = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing export")] = ExportOptions.overwrite,
    engine: Annotated[
        str | None, typer.Option("--to", help=f"Export to {', '.join(ENGINES)}", show_default=False)
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="With --to: address of the engine", show_default=False)
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="With --to: collection (default: the index's name)", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Write the documents of INDEX as JSON Lines, which `counterpoint index` reads back.

    With --to, write documents, metadata, vectors and BM25 terms to a search engine instead. Running it again
    continues an interrupted export, and writes only documents that have changed. A server's key is read from
    COUNTERPOINT_EXPORT_KEY.
    """
    from counterpoint.exporters import export_to
    from counterpoint.index import Index
    from counterpoint.index.disk_usage import counted_text
    from counterpoint.library.index_export import export_index

    condition = condition_of(where)
    if engine is not None:
        if vectors or condition is not None:
            raise ConfigError("--to exports all documents with vectors; leave --vectors and --where out")
        with Index(index) as opened, progress("exporting", "documents", len(opened)) as update:
            told = export_to(
                opened, engine, url=url, folder=output, name=name, overwrite=overwrite, on_progress=update
            )
        return emit({"index": str(index), **told}, lambda: _told(told), json)
    if output is None or url is not None or name is not None:
        raise ConfigError("give the folder to write with -o FOLDER, or an engine with --to")

    with Index(index) as opened:
        total = len(opened) if condition is None else int(opened.matching(condition).sum())
        with progress("exporting", "documents", total) as update:
            options = ExportOptions(vectors=vectors, where=condition, overwrite=overwrite)
            result = export_index(opened, output, options, update)
    what = f"{counted_text(result)}, {result['bytes'] / 2**20:.1f} MiB"
    then = f"Read it back with: counterpoint index {escaped(str(output))} -o INDEX"
    if not total:  # which `index` refuses
        then = "The index is empty." if condition is None else "No document meets the condition of --where."
    emit({"index": str(index), **result}, lambda: f"{what}\n{then}", json)


def _told(result: dict[str, Any]) -> str:
    lines = [
        f"{result['engine']} {result['collection']}: {result['written']:,} documents written, "
        f"{result['unchanged']:,} unchanged"
    ]
    lines += [f"  {escaped(part)}: {how}" for part, how in result["held"].items()]
    lines += ["not held, or otherwise:"] if result["not_held"] else []
    return "\n".join([*lines, *(f"  {escaped(line)}" for line in result["not_held"])])
