"""`counterpoint info` and `counterpoint verify`: the contents of an index, and whether they are intact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli.console import Json, complain, emit
from counterpoint.cli.options import IndexFolder, ModelName
from counterpoint.cli.progress import loading, progress
from counterpoint.errors import ConfigError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.index.repairing import Repaired
    from counterpoint.model import Model

__all__ = ["info", "verify"]


def info(
    index: Annotated[Path | None, typer.Argument(help="Folder that `counterpoint index` wrote")] = None,
    hardware: Annotated[
        bool, typer.Option("--hardware", help="Show which kernel computes scores on this machine")
    ] = False,
    json: Json = False,
) -> None:
    """Show the contents of INDEX and its disk usage."""
    if index is None and not hardware:
        raise ConfigError("info: name an INDEX, or ask for --hardware")
    found: dict[str, Any] = {}
    if index is not None:
        from counterpoint.index import Index

        with Index(index) as opened:
            found = opened.info()
    if hardware:
        from counterpoint.index.paths import described

        found["hardware"] = described()
    emit(found, lambda: "\n\n".join(_texts(found)), json)


def verify(
    index: IndexFolder,
    recall: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="QUERIES", help="Measure recall against brute force, over this many titles"
        ),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild files that can be derived from intact ones")
    ] = False,
    encode: Annotated[
        bool, typer.Option("--encode", help="With --repair: encode lost vectors again from the texts")
    ] = False,
    drop_damaged: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --repair: drop damaged documents, and list them here"),
    ] = None,
    model: ModelName = None,
    json: Json = False,
) -> None:
    """Check every file of INDEX against its checksum; exit code 2 if one is damaged.

    For each damaged file, the message says what --repair does. --recall searches for titles and compares the
    results with those of scoring every document. --drop-damaged writes the dropped documents as JSON Lines.
    """
    from counterpoint.index import Index, Manifest
    from counterpoint.index.manifest import COPY
    from counterpoint.index.manifest_copy import damaged_copy

    if not repair and (encode or drop_damaged is not None):
        raise ConfigError("--encode and --drop-damaged need --repair; add it")
    repaired = _repaired(index, encode, drop_damaged, model) if repair else None
    manifest = Manifest.read(index)
    damaged = manifest.damaged(index)
    remedies = {}
    if damaged:
        from counterpoint.index.repairing import remedies as remedies_of

        remedies = remedies_of(index, damaged)
    if damaged_copy(index):
        damaged[COPY] = "damaged"
        remedies[COPY] = "--repair makes it again"
    faults = [f"{index / name}: {what}" for name, what in damaged.items()]
    if not faults:
        Index(index).close()  # all checksums match; check that the index opens, too
    result: dict[str, Any] = {
        "index": str(index),
        "files": len(manifest.files),
        "ok": not faults,
        "faults": faults,
    }
    if repaired is not None:
        result["repaired"] = {
            "files": repaired.files, "encoded": repaired.encoded, "dropped": repaired.dropped,
        }  # fmt: skip
    if damaged:
        result["remedies"] = remedies
    if recall is not None and not faults:
        result["recall"] = _recall(index, recall)
    emit(result, lambda: _verified(result), json)
    for name, what in damaged.items():
        complain(f"error: {index / name}: {what}; {result['remedies'][name]}")
    if faults:
        raise typer.Exit(2)


def _repaired(index: Path, encode: bool, drop: Path | None, model: str | None) -> Repaired:
    from counterpoint.index import Manifest
    from counterpoint.index.repairing import repair
    from counterpoint.library.stored import model_for

    def load() -> Model | None:
        manifest = Manifest.read(index)  # only now, as the repair may have had to rebuild it
        with loading((manifest.model or {}).get("name")):
            return model_for(index, manifest, model)

    with progress("encoding", "documents", None) as update:
        return repair(index, load=load if encode else None, drop=drop, on_progress=update)


def _recall(index: Path, count: int) -> dict[str, Any]:
    from counterpoint.library import open_index
    from counterpoint.search.recall import recall_of, sampled_queries

    opened = open_index(index)
    queries = sampled_queries(opened.index, count)
    with progress("comparing", "queries", len(queries)) as advance:
        found = recall_of(opened.searcher(), queries, on_progress=advance)
    by_depth = {f"R@{depth}": share for depth, share in found.recall.items()}
    return {"queries": found.queries, **by_depth, "worst": {"query": found.worst[0], "R@10": found.worst[1]}}


def _verified(result: Mapping[str, Any]) -> str:
    lines = []
    if done := result.get("repaired"):
        lines.append(
            f"repaired: {len(done['files'])} files; {done['encoded']:,} documents encoded again, "
            f"{done['dropped']:,} dropped"
        )
    now = " now" if done else ""
    lines.append(f"{result['files']} files, {len(result['faults'])} damaged{now}")
    if found := result.get("recall"):
        worst = found["worst"]
        lines.append(
            f"recall of the best 10 and 100 documents by brute force: {found['R@10']:.1%} and "
            f"{found['R@100']:.1%} over {found['queries']} titles; worst: {worst['R@10']:.0%} of 10 for "
            f"{escaped(worst['query'])!r}"
        )
    return "\n".join(lines)


def _texts(found: Mapping[str, Any]) -> Iterator[str]:
    if "bytes" in found:
        yield _text(found)
    if "hardware" in found:
        yield f"scores: {found['hardware']['kernel']}"


def _text(found: Mapping[str, Any]) -> str:
    from counterpoint.index.disk_usage import (
        auto_text,
        built_text,
        changed_text,
        counted_text,
        cut_text,
        drift_texts,
        fit_text,
        queries_text,
    )

    total, model, built = found["bytes"], found["model"], built_text(found)
    lines = [
        f"{counted_text(found)}, {total:,} bytes ({found['bytes_per_document']:,.0f} per document)",
        escaped(f"written {found['created']} by counterpoint {found['software']}"),
        *filter(None, (changed_text(found), fit_text(found))),
        *map(escaped, drift_texts(found)),
        *([f"built in {built}"] if built else []),
        escaped(f"model {model['name']} ({model['fingerprint'][:12]})") if model else "no model",
        *map(escaped, filter(None, (auto_text(found), queries_text(found), cut_text(found)))),
        "",
        f"{'':24}{'bytes':>14}{'share':>8}{'per doc':>12}",
    ]
    for purpose, size in sorted(found["bytes_by_purpose"].items(), key=lambda item: -item[1]):
        lines.append(
            f"{escaped(purpose):24}{size:>14,}{size / total:>8.1%}{size / max(found['documents'], 1):>12,.1f}"
        )
    lines.append(f"{'all':24}{total:>14,}{1:>8.1%}{found['bytes_per_document']:>12,.1f}")
    if found["factor_over_text"] is not None:
        lines.append(
            f"\nall files except the documents: {found['factor_over_text']:.2f} times their plain text "
            f"({found['text_bytes']:,} bytes)"
        )
    for name, layout in found["sets"].items():
        ids = "" if layout["distinct_ids"] is None else f", {layout['distinct_ids']:,} distinct ids"
        if layout["static"]:
            kept = f"in the model's table; {layout['stored_ids']:,} ids kept, each once per document"
        else:
            kept = escaped(f"× {layout['codec']}")
        lines.append(
            f"\n{escaped(name)}: {layout['vectors']:,} vectors of {layout['dim']} {kept}, "
            f"{layout['vectors_per_document']:.1f} per document, {layout['bytes_per_vector']:.1f} bytes each "
            f"with all that belongs to them{ids}"
        )
    return "\n".join(lines)
