"""Merge the BM25 files of several segments, without deleted documents.

The result is byte-identical to a build of the same documents. Only counts are stored per document, so no text
is analysed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

import numpy as np
from jaxtyping import Bool

from counterpoint.index.npy import NpyWriter, open_npy
from counterpoint.index.term_files import TermFiles
from counterpoint.index.term_runs import SortedRun, write_runs

__all__ = ["merge_terms"]

KINDS: Mapping[str, type[np.generic]] = MappingProxyType(
    {
        "text": np.uint8,
        "ends": np.int64,
        "frequencies": np.int64,
        "documents": np.uint32,
        "counts": np.uint32,
        "lengths": np.uint32,
    }
)


def merge_terms(parts: Sequence[tuple[TermFiles, Bool[np.ndarray, " n"] | None]], folder: Path) -> None:
    """Write the terms of all live documents into `folder`.

    Postings are unpacked into temporary files in the same folder, so memory grows only with the postings of
    one term.

    Args:
        parts: for each segment its terms, and which of its documents are not deleted; None for all.
        folder: an existing one.

    Raises:
        ArtifactError: a segment's files are damaged.
    """
    runs, first = [], 0
    try:
        for number, (terms, live) in enumerate(parts):
            runs.append(_run(terms, live, first, folder / f"run{number}"))
            first += len(runs[-1].lengths)
        write_runs(runs, folder)
    finally:
        for path in folder.glob("run*.*.npy"):
            path.unlink()


def _run(terms: TermFiles, live: Bool[np.ndarray, " n"] | None, first: int, stem: Path) -> SortedRun:
    """Write the terms of a segment's live documents to disk; the first document gets the number `first`."""
    kept = np.ones(terms.documents, bool) if live is None else live
    numbers, end = np.cumsum(kept) - 1 + first, 0
    writers: dict[str, NpyWriter] = {}
    with ExitStack() as files:
        for name, of in KINDS.items():
            writers[name] = NpyWriter(stem.with_name(f"{stem.name}.{name}.npy"), of)
            files.callback(writers[name].abandon)
        writers["lengths"].append(terms.lengths[kept])
        for part in terms.every():
            mine = kept[part.documents]
            owners = np.repeat(np.arange(len(part.sizes)), part.frequencies)
            left = np.bincount(owners[mine], minlength=len(part.sizes))
            some = left > 0
            writers["text"].append(part.text[np.repeat(some, part.sizes)])
            writers["ends"].append(end + np.cumsum(part.sizes[some]))
            writers["frequencies"].append(left[some])
            writers["documents"].append(numbers[part.documents[mine]].astype(np.uint32))
            writers["counts"].append(part.counts[mine].astype(np.uint32))
            end = writers["text"].rows
        for writer in writers.values():
            writer.close()
    return SortedRun(**{name: open_npy(writer.path) for name, writer in writers.items()})
