"""`counterpoint compact`: few segments in place of many, without deleted documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.options import IndexFolder, ModelName
from counterpoint.cli.progress import loading, progress

__all__ = ["compact"]


def compact(
    index: IndexFolder,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit",
            help="Encode all documents again, and fit means of words and centroids to all of them.",
        ),
    ] = False,
    model: ModelName = None,
    json: Json = False,
) -> None:
    """Make INDEX smaller and faster: join its segments and leave deleted documents out."""
    from counterpoint.library import OpenIndex

    with OpenIndex(index, model) as opened:
        before = opened.info()
        if refit and opened.index.layouts:
            with loading((opened.index.manifest.model or {}).get("name")):
                _ = opened.model  # loaded here, where a terminal is told
        with progress("compacting", "documents", len(opened) if refit else None) as update:
            commits = opened.compact(refit=refit, on_progress=update)
        after = opened.info()
        result = {
            "index": str(index), "commits": commits, "segments": after["segments"],
            "segments_before": before["segments"], "deleted": after["deleted"],
            "deleted_before": before["deleted"], "bytes": after["bytes"], "bytes_before": before["bytes"],
        }  # fmt: skip
        emit(result, lambda: _text(result), json)


def _text(result: Mapping[str, Any]) -> str:
    if not result["commits"]:
        return "nothing to do: no segments to join, and no deleted documents to leave out"
    return (
        f"{result['segments_before']:,} to {result['segments']:,} segments, {result['deleted_before']:,} to "
        f"{result['deleted']:,} deleted documents, {result['bytes_before'] / 2**20:,.1f} to "
        f"{result['bytes'] / 2**20:,.1f} MiB"
    )
