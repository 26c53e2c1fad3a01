"""`counterpoint compact`: merge segments and drop deleted documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from counterpoint.cli.console import Json, emit, note
from counterpoint.cli.options import IndexFolder, ModelName
from counterpoint.cli.progress import loading, progress

__all__ = ["compact"]


def compact(
    index: IndexFolder,
    refit: Annotated[
        bool, typer.Option("--refit", help="Re-encode all documents; refit word means and centroids")
    ] = False,
    shards: Annotated[
        int | None, typer.Option(min=1, help="Divide the index into this many shards; 1 for none")
    ] = None,
    model: ModelName = None,
    json: Json = False,
) -> None:
    """Make INDEX smaller and faster: merge its segments and drop deleted documents.

    With --refit, all documents are encoded again, and means of words and centroids are fitted to all of them.
    --shards changes how the index is divided, without encoding anything.
    """
    from counterpoint.index.disk_usage import units_of
    from counterpoint.index.sharding import empty_text
    from counterpoint.library import OpenIndex

    with OpenIndex(index, model) as opened:
        before = opened.index.disk_usage()
        units = units_of(before)
        if refit and opened.index.layouts:
            with loading((opened.index.manifest.model or {}).get("name")):
                _ = opened.model  # load it here, so that a terminal shows a note
        with progress("compacting", units, len(opened) if refit else None) as update:
            commits = opened.compact(refit=refit, shards=shards, on_progress=update)
        after = opened.index.disk_usage()
        if shards is not None and shards > 1 and (told := empty_text(shards, after["documents"])):
            note(told)
        result = {
            "index": str(index), "commits": commits, "segments": after["segments"],
            "segments_before": before["segments"], "deleted": after["deleted"],
            "deleted_before": before["deleted"], "shards": after["shards"],
            "bytes": after["bytes"], "bytes_before": before["bytes"],
        }  # fmt: skip
        emit(result, lambda: _text(result, units), json)


def _text(result: Mapping[str, Any], units: str) -> str:
    if not result["commits"]:
        return f"nothing to do: no segments to merge, and no deleted {units} to drop"
    shards = "" if result["shards"] == 1 else f" in {result['shards']:,} shards"
    return (
        f"{result['segments_before']:,} to {result['segments']:,} segments{shards}, "
        f"{result['deleted_before']:,} to {result['deleted']:,} deleted {units}, "
        f"{result['bytes_before'] / 2**20:,.1f} to {result['bytes'] / 2**20:,.1f} MiB"
    )
