"""Disk usage of an index: every byte of its folder counted once, by purpose."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from counterpoint.index.checked import BLOCKS
from counterpoint.index.codec import CODECS
from counterpoint.index.database import CHECKS, DATABASE, PASSAGES
from counterpoint.index.later import seen_and_later_counts
from counterpoint.index.manifest import COPY, NAME, SHARDS
from counterpoint.index.segment import ORDER, Segment

if TYPE_CHECKING:
    from counterpoint.index.layout import SetLayout
    from counterpoint.index.opening import Opened

__all__ = [
    "PURPOSES",
    "auto_text",
    "built_text",
    "changed_text",
    "counted_text",
    "cut_text",
    "disk_usage",
    "drift_texts",
    "fit_text",
    "queries_text",
    "units_of",
]

REFIT = 0.5  # a refit is recommended once a larger share of documents was added after the fit

KINDS = {
    "means": ("means", "mean_scales", "mean_ranks"),
    "centroids": ("centroids", "centroid_scales"),
    "clusters": ("clusters",),
    "lists": ("lists", "list_counts", "list_ends"),
    "centres": ("centres", "centre_scales"),
    "ids": ("ids", "ranks"),
    "offsets": ("lengths", "offsets"),
    "vocabulary": ("vocabulary", "frequencies"),
    "postings": ("postings", "starts"),
    "sorted rows": ("sorted_values", "sorted_scales", "sorted_documents"),
    "graph": ("hnsw",),
    "sketch": ("signs", "sign_scales"),
}
PURPOSES: Mapping[str, str] = MappingProxyType(
    {kind: name for name, kinds in KINDS.items() for kind in kinds}
)
"""The purpose of a vector set's file, by the part of its name after the set; not for arrays of codecs."""


def disk_usage(folder: Path, held: Opened, distinct: Callable[[str], int]) -> dict[str, Any]:
    """Sizes by purpose and by vector set, and the size of the index relative to its texts.

    `documents` counts a document that was cut into passages once; `passages` counts everything that can be
    found. `deleted` documents still use disk space, in `segments`. `longer_than_model` passages have more
    than the `model_reads` word-pieces that the model reads; both are None if they were not counted. `shards`
    is 1 for an index that is not divided. `text_bytes` counts titles and texts in UTF-8. `factor_over_text`
    is the size of everything but the documents' database, divided by `text_bytes`; None without text. `built`
    is the cost of the build, see `Manifest.cost`. `fit` says how many documents were added after the fit of
    means and centroids, and `auto_codec` how the codec was chosen, or is None if it was given.
    """
    manifest, segments, sets = held
    purposes: dict[str, int] = {}
    layouts = {name: store.layout for name, store in sets.items()}
    for path, size in sorted(_sizes(folder)):
        purpose = _purpose(path.relative_to(folder), layouts)
        purposes[purpose] = purposes.get(purpose, 0) + size
    total, documents, passages = sum(purposes.values()), _whole(segments), manifest.documents
    text = sum(segment.database.text_bytes(segment.gone) for segment in segments)
    derived = total - purposes.get("documents", 0)
    counted = manifest.report
    return {
        "documents": documents,
        "passages": passages,
        "deleted": sum(segment.documents for segment in segments) - passages,
        "segments": len(segments),
        "shards": manifest.shards,
        "longer_than_model": counted.get("longer"),
        "model_reads": counted.get("longest"),
        "bytes": total,
        "bytes_per_document": total / max(documents, 1),
        "bytes_by_purpose": purposes,
        "text_bytes": text,
        "factor_over_text": derived / text if text else None,
        "sets": {name: _set(held, name, purposes, distinct) for name in sets},
        "fit": _fit(segments, layouts),
        "auto_codec": manifest.settings.get("auto"),
        "built": dict(manifest.cost),
        "created": manifest.created,
        "software": manifest.software,
        "model": manifest.model,
        "lexical": manifest.settings["lexical"],
        "search": manifest.settings["search"],
    }


def counted_text(account: Mapping[str, Any]) -> str:
    """The number of documents, and of passages if some were cut."""
    documents, passages = account["documents"], account["passages"]
    found = f"{documents:,} {'document' if documents == 1 else 'documents'}"
    return found if passages == documents else f"{found} in {passages:,} passages"


def units_of(account: Mapping[str, Any]) -> str:
    """What an index stores one by one: `passages` if documents were cut, else `documents`."""
    return "documents" if account["passages"] == account["documents"] else "passages"


def changed_text(account: Mapping[str, Any]) -> str:
    """The shards, segments and deletes of an index that a compaction may change; empty if there is nothing.

    >>> changed_text({"segments": 9, "deleted": 2, "shards": 8, "documents": 3, "passages": 7})
    '8 shards; 9 segments; deleted passages still on disk: 2'
    """
    segments, deleted, shards = account["segments"], account["deleted"], account["shards"]
    told = [] if shards == 1 else [f"{shards:,} shards"]
    if segments > shards or deleted:
        told.append(f"{segments:,} {'segment' if segments == 1 else 'segments'}")
        told.append(f"deleted {units_of(account)} still on disk: {deleted:,}")
    return "; ".join(told)


def fit_text(account: Mapping[str, Any]) -> str:
    """How many documents or passages means and centroids were fitted to; empty if nothing was fitted.

    >>> fit = {"seen": 900, "later": 300, "waiting": 100, "due": False}
    >>> fit_text({"fit": fit, "documents": 1200, "passages": 1200})
    'means or centroids were fitted to 900 documents; 300 were added later, of which 100 are kept in 8 bits'
    >>> fit = {"seen": 0, "later": 6, "waiting": 0, "due": True}
    >>> fit_text({"fit": fit, "documents": 6, "passages": 6}).partition("; ")[0]
    'none of the documents that means or centroids were fitted to is left'
    """
    fit = account["fit"]
    if fit is None:
        return ""
    units, fitted = units_of(account), "means or centroids were fitted to"
    told = (
        f"{fitted} {fit['seen']:,} {units}" if fit["seen"] else f"none of the {units} that {fitted} is left"
    )
    told = f"{told}; {fit['later']:,} were added later"
    waits = f", of which {fit['waiting']:,} are kept in 8 bits" if fit["waiting"] else ""
    return f"{told}{waits}" + ("; compact --refit fits them to all" if fit["due"] else "")


def drift_texts(account: Mapping[str, Any]) -> list[str]:
    """How much means or centroids explain, one sentence per fitted set; empty if nothing was added later.

    >>> seen, later = {"explained": 0.523, "documents": 256}, {"explained": 0.474, "documents": 58}
    >>> account = {"drift": {"words": {"fit": "means", "seen": seen, "later": later}}}
    >>> drift_texts({**account, "documents": 958, "passages": 958})[0].partition(", and ")[::2]
    ('words: means explain 52 % of the energy of vectors in 256 of the documents that they were fitted to', \
'47 % in 58 of those added later')
    """
    units, told = units_of(account), []
    for name, found in (account["drift"] or {}).items():
        (seen, of_seen), (later, of_later) = (
            (found[kind]["explained"], f"{found[kind]['documents']:,}") for kind in ("seen", "later")
        )
        what = "of the energy of vectors"
        new = f"{_whole_percent(later)} {what} in {of_later} of the {units} added later"
        if seen is not None:
            old = f"{_whole_percent(seen)} {what} in {of_seen} of the {units} that they were fitted to"
            new = f"{old}, and {_whole_percent(later)} in {of_later} of those added later"
        told.append(f"{name}: {found['fit']} explain {new}")
    return told


def _whole_percent(share: float) -> str:
    return f"{round(100 * share)} %"  # never "-0"


def auto_text(account: Mapping[str, Any]) -> str:
    """How the codec was chosen; empty if it was given."""
    found = account["auto_codec"]
    if found is None:
        return ""
    if not found["queries"]:
        few = f"{found['documents']:,} {units_of(account)}"
        why = f"{few} are too few to compare codecs, or no vectors are stored"
        return f"codec {found['codec']}, the default: {why}"
    measured = "; ".join(
        f"{one['codec']} {one['bytes']:,.0f} bytes per document, {_percent(min(one['overlap'].values()))}"
        for one in found["measured"]
    )
    return (
        f"codec {found['codec']}: the fewest bytes that keep {_percent(found['bound'])} of the best ten "
        f"documents ({found['documents']:,} {units_of(account)}, {found['queries']} queries: {measured})"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def built_text(account: Mapping[str, Any]) -> str:
    """What the build took; empty for an index of an earlier version.

    >>> built_text({"built": {"seconds": 80.0, "encoder_seconds": 76.0, "peak_resident_bytes": 2**30}})
    '80.0 s: 95 % in the encoder, 5 % in everything else; peak resident memory 1,024 MiB'
    """
    cost = account["built"]
    if not cost:
        return ""
    seconds, encoder, peak = cost["seconds"], cost["encoder_seconds"], cost["peak_resident_bytes"]
    share = encoder / max(seconds, 1e-9)
    shares = f": {share:.0%} in the encoder, {1 - share:.0%} in everything else".replace("%", " %")
    memory = "" if peak is None else f"; peak resident memory {peak / 2**20:,.0f} MiB"
    return f"{seconds:.1f} s{shares if encoder else ''}{memory}"


def queries_text(account: Mapping[str, Any]) -> str:
    """How queries are encoded; empty for an index without a model."""
    if not account["model"]:
        return ""
    told = account["model"].get("queries")
    if told is None:
        return "queries are encoded with torch; build the index again to export an encoder without torch"
    if "why" in told:
        return f"queries are encoded with torch: {told['why']}"
    if told.get("bits") == 8:
        return f"queries are encoded in 8 bits; mean cosine {told['cosine']:.4f} to the vectors of float32"
    return (
        f"queries are encoded with ONNX Runtime; largest difference from torch {told['difference']:.1e} in "
        f"{told['texts']} texts"
    )


def cut_text(account: Mapping[str, Any]) -> str:
    """How many texts are longer than the model reads; empty if none is, or nothing was counted."""
    longer, passages = account["longer_than_model"], account["passages"]
    if not longer:
        return ""
    name = (account["model"] or {}).get("name") or "./"
    model = "the model" if name.startswith("./") else name  # such a path is internal to the index
    ends = "only BM25 indexes the rest" if account["lexical"] else "the rest is not indexed"
    return (
        f"{longer:,} of {passages:,} {units_of(account)} are longer than the {account['model_reads']:,} "
        f"word-pieces that {model} reads; {ends}; see --passage-words"
    )


def _fit(segments: Sequence[Segment], layouts: Mapping[str, SetLayout]) -> dict[str, Any] | None:
    """How many live documents the fits have seen; None if nothing is fitted.

    `due` is True if more than `REFIT` of all documents were added later.
    """
    if not any(layout.fitted for layout in layouts.values()):
        return None
    seen, later = seen_and_later_counts(segments)
    waiting = sum(each.entry.live for each in segments if each.entry.codecs)
    return {"seen": seen, "later": later, "waiting": waiting, "due": later > REFIT * (seen + later)}


def _whole(segments: Sequence[Segment]) -> int:
    """Number of documents, counting one that was cut into passages once."""
    cut = [segment.database.parents(segment.gone) for segment in segments]
    return sum(segment.entry.live for segment in segments) + sum(
        parents - passages for parents, passages in cut
    )


def _set(
    held: Opened, name: str, purposes: Mapping[str, int], distinct: Callable[[str], int]
) -> dict[str, Any]:
    """Sizes of one vector set; `bytes` counts all its files.

    `vectors` is the number that the model made, or that token pooling left. A static set stores none of
    them: `stored_ids` is the number of its ids, each once per document. Both include deleted documents that
    are still on disk.
    `vectors_per_document` is derived from the average over all stored passages.
    """
    manifest, segments, sets = held
    layout, end = sets[name].layout, sum(segment.documents for segment in segments)
    vectors = sum(entry.vectors[name] for entry in manifest.segments)
    static = layout.kind == "static"
    ids = int(sets[name].lengths.sum()) if static else None
    size = sum(size for purpose, size in purposes.items() if purpose.endswith(f": {name}"))
    return {
        "dim": layout.dim,
        "codec": None if static else layout.codec,
        **({"pool_factor": layout.pool} if layout.pool > 1 else {}),
        "static": static,
        "stored_ids": ids,
        "vectors": vectors,
        "vectors_per_document": vectors / max(end, 1) * manifest.documents / max(_whole(segments), 1),
        "bytes": size,
        "bytes_per_vector": size / max(vectors, 1),
        "distinct_ids": distinct(name) if layout.ids else None,
    }


def _sizes(folder: Path) -> Iterator[tuple[Path, int]]:
    """Every file of a folder with its size, without those that another process removes meanwhile."""
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in names):
            with suppress(FileNotFoundError):
                yield path, path.stat().st_size


def _purpose(path: Path, layouts: Mapping[str, SetLayout]) -> str:
    if path.name in (NAME, COPY):
        return "manifest"
    if path.parts[0] == SHARDS:
        return _purpose(Path(*path.parts[2:]), layouts)
    if path.parts[0] in ("lexical", "deletes"):
        return path.parts[0]
    if path.parts[0] == "models":
        return "model" if len(path.parts) > 3 else "queries"
    if path.name in (BLOCKS, CHECKS):
        return "checksums"
    if path.name in (DATABASE, PASSAGES):
        return "documents"
    if path.name in ORDER:
        return "order"
    name, _, kind = path.name.removesuffix(".npy").partition(".")
    if path.parts[0] == "segments" and name in layouts:
        if kind in PURPOSES:
            return f"{PURPOSES[kind]}: {name}"
        if any(kind in codec.layout(1) for codec in CODECS.values()):  # segments may differ in their codecs
            return f"vectors: {name}"
    return "other"
