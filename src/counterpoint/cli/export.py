"""`counterpoint export`: write an index's documents and, optionally, its vectors for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.options import IndexFolder, Where
from counterpoint.cli.progress import progress
from counterpoint.escapes import escaped
from counterpoint.library.options import ExportOptions

__all__ = ["export"]


def export(
    index: IndexFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Write to this folder")],
    vectors: Annotated[
        bool, typer.Option(help="Write vectors as well (safetensors, float32)")
    ] = ExportOptions.vectors,
    where: Where = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing export")] = ExportOptions.overwrite,
    json: Json = False,
) -> None:
    """Write the documents of INDEX as JSON Lines, which `counterpoint index` reads back."""
    from counterpoint.index import Index
    from counterpoint.index.disk_usage import counted_text
    from counterpoint.library.index_export import export_index

    with Index(index) as opened:
        total = len(opened) if where is None else int(opened.matching(where).sum())
        with progress("exporting", "documents", total) as update:
            options = ExportOptions(vectors=vectors, where=where, overwrite=overwrite)
            result = export_index(opened, output, options, update)
    emit(
        {"index": str(index), **result},
        lambda: (
            f"{counted_text(result)}, {result['bytes'] / 2**20:.1f} MiB\n"
            f"Read it back with: counterpoint index {escaped(str(output))} -o INDEX"
        ),
        json,
    )
