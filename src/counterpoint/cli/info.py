"""`counterpoint info` and `counterpoint verify`: what an index is made of, and whether it still is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from counterpoint.cli.console import Json, complain, emit
from counterpoint.cli.options import IndexFolder
from counterpoint.escapes import escaped

__all__ = ["info", "verify"]


def info(index: IndexFolder, json: Json = False) -> None:
    """Show what INDEX holds and where its bytes are."""
    from counterpoint.index import Index

    with Index(index) as opened:
        found = opened.info()
    emit(found, lambda: _text(found), json)


def verify(index: IndexFolder, json: Json = False) -> None:
    """Compare every file of INDEX with its checksum; exit code 2 if one is damaged."""
    from counterpoint.index import Index, Manifest

    manifest = Manifest.read(index)
    faults = manifest.faults(index)
    if not faults:
        Index(index).close()  # everything is as it was written, and what was written opens
    result = {"index": str(index), "files": len(manifest.files), "ok": not faults, "faults": faults}
    emit(result, lambda: f"{len(manifest.files)} files, {len(faults)} damaged", json)
    for fault in faults:
        complain(f"error: {fault}")
    if faults:
        raise typer.Exit(2)


def _text(found: Mapping[str, Any]) -> str:
    from counterpoint.index.accounts import counted_text, cut_text, queries_text

    total = found["bytes"]
    lines = [
        f"{counted_text(found)}, {total:,} bytes ({found['bytes_per_document']:,.0f} a document)",
        escaped(f"written {found['created']} by counterpoint {found['software']}"),
        escaped(f"model {found['model']['name']} ({found['model']['fingerprint'][:12]})")
        if found["model"]
        else "no model",
        *([escaped(queries)] if (queries := queries_text(found)) else []),
        *([escaped(cut)] if (cut := cut_text(found)) else []),
        "",
        f"{'':24}{'bytes':>14}{'share':>8}{'a document':>12}",
    ]
    for purpose, size in sorted(found["bytes_by_purpose"].items(), key=lambda item: -item[1]):
        lines.append(
            f"{escaped(purpose):24}{size:>14,}{size / total:>8.1%}{size / found['documents']:>12,.1f}"
        )
    lines.append(f"{'all':24}{total:>14,}{1:>8.1%}{found['bytes_per_document']:>12,.1f}")
    if found["factor_over_text"] is not None:
        lines.append(
            f"\nall but the documents is {found['factor_over_text']:.2f} times their plain text "
            f"({found['text_bytes']:,} bytes)"
        )
    for name, layout in found["sets"].items():
        ids = "" if layout["distinct_ids"] is None else f", {layout['distinct_ids']:,} distinct ids"
        if layout["static"]:
            kept = f"in the model's table; {layout['stored_ids']:,} ids kept, each once a document"
        else:
            kept = escaped(f"× {layout['codec']}")
        lines.append(
            f"\n{escaped(name)}: {layout['vectors']:,} vectors of {layout['dim']} {kept}, "
            f"{layout['vectors_per_document']:.1f} a document, {layout['bytes_per_vector']:.1f} bytes each "
            f"with all that belongs to them{ids}"
        )
    return "\n".join(lines)
