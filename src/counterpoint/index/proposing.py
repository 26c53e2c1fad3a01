"""From centroids to candidates, in numpy; `counterpoint.index.compiled.proposing` does the same faster.

All sums are of integers, so their order does not matter. A level is a similarity with a centroid, in 255
steps of the largest one; negative similarities get level 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int, Integer, UInt8

from counterpoint.index.best import best_of

__all__ = ["LEVELS", "gathered", "interactions", "levels_of", "probed"]

LEVELS = 255


def probed(similarity: Float[np.ndarray, "c m"], count: int) -> Int[np.ndarray, "m p"]:
    """For each query row, the `count` most similar centroids, best first; the first on ties."""
    found = np.zeros((similarity.shape[1], min(count, len(similarity))), np.int64)
    for m, of_row in enumerate(similarity.T):
        some = np.sort(best_of(of_row, count, matching=False))
        found[m] = some[np.argsort(-of_row[some], kind="stable")]
    return found


def levels_of(similarity: Float[np.ndarray, "c m"], top: np.float32) -> UInt8[np.ndarray, "c m"]:
    """Similarities as levels; `top` is the largest similarity."""
    unit = np.float32(LEVELS) / top if top > 0 else np.float32(0)
    return np.clip(np.rint(similarity * unit), 0, LEVELS).astype(np.uint8)


def gathered(
    levels: UInt8[np.ndarray, "c m"],
    probes: Int[np.ndarray, "m p"],
    documents_of: Callable[[int], Int[np.ndarray, " k"]],
    documents: int,
) -> Int[np.ndarray, " n"]:
    """For each document, the levels of its probed clusters above the level of the last probe, summed.

    The list of the last probed centroid is not read. A document that is in none of a query row's earlier
    lists has at most this centroid's level, and gets it (the missing similarity imputation of Scheerer et al.
    2025, WARP).

    Args:
        levels: of each centroid with each query row.
        probes: as returned by `probed`.
        documents_of: the documents in the list of a centroid.
        documents: number of documents.
    """
    found = np.zeros(documents, np.int32)
    for m, centroids in enumerate(probes):
        gains = levels[centroids, m].astype(np.int32)
        best = np.zeros(documents, np.int32)
        for centroid, gain in zip(centroids[::-1].tolist(), (gains - gains[-1])[::-1], strict=True):
            best[documents_of(centroid)] = gain
        found += best
    return found


def interactions(
    levels: UInt8[np.ndarray, "c m"],
    places: Integer[np.ndarray, " r"],
    firsts: Int[np.ndarray, " k"],
    lasts: Int[np.ndarray, " k"],
) -> Int[np.ndarray, " k"]:
    """MaxSim of a query with documents whose rows are replaced by their centroids, in levels.

    Args:
        levels: of each centroid with each query row.
        places: for every row of the set, the place of its centroid.
        firsts: the first row of each document.
        lasts: where its rows end.
    """
    found, lengths = np.zeros(len(firsts), np.int32), lasts - firsts
    filled, begin = np.flatnonzero(lengths), np.cumsum(lengths) - lengths
    if len(filled):
        rows = np.arange(lengths.sum()) + np.repeat(firsts - begin, lengths)
        best = np.maximum.reduceat(levels[places[rows]], begin[filled], axis=0)
        found[filled] = best.sum(axis=1, dtype=np.int32)
    return found
