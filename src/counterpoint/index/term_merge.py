"""BM25's files of several segments as those of one, deleted documents left out.

The files are the very ones that a build of the same documents writes: of each document only counts are kept,
so nothing has to be analysed again.
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
from counterpoint.index.term_runs import Run, write_runs

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

    Postings are unpacked into files beside the new ones, which are removed again: memory grows with the
    postings of one term and with nothing else.

    Args:
        parts: of each segment its terms, and which of its documents are not deleted; None for all.
        folder: that is there.

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


def _run(terms: TermFiles, live: Bool[np.ndarray, " n"] | None, first: int, stem: Path) -> Run:
    """The terms of a segment's live documents, the first of which gets the number `first`, on the disk."""
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
    return Run(**{name: open_npy(writer.path) for name, writer in writers.items()})
