"""The second pass over a set of few bits, which stores rows as differences from means and centres.

A row is its word's mean, plus its document's centre, plus a rest in a few bits. Means and centres need no
extra index, as the word and the document are stored anyway, and account for most of the energy. Large sets
without words use centroids instead of means (`counterpoint.index.centroids`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import DataError
from counterpoint.index.centres import centres_of
from counterpoint.index.centroids import Centroids, count_for, write_centroids
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.coarse import CODEC, Table
from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.kernels import runs_of
from counterpoint.index.layout import SetLayout
from counterpoint.index.means import Means, write_means
from counterpoint.index.npy import NpyWriter, open_npy
from counterpoint.index.rotation import rotation

__all__ = ["LEAST", "coded", "encode_residuals", "kinds_of"]

LEAST = 4  # a word in fewer documents gets no mean, which takes 190 bytes
CHUNK = 2**13  # rows encoded at a time, or those of one document


def encode_residuals(folder: Path, name: str, layout: SetLayout) -> None:
    """Fit means and centres, and encode the rows in `<set>.raw.npy`.

    Memory grows only with the number of means or centroids, one vector each.
    """
    turn = rotation(layout.dim)
    raw = open_npy(folder / f"{name}.raw.npy")
    base = _base(folder, name, layout, raw)
    offsets = np.concatenate([[0], np.cumsum(np.load(folder / f"{name}.lengths.npy"), dtype=np.int64)])
    with ExitStack() as files:
        writers = {
            key: files.enter_context(NpyWriter(folder / f"{name}.{key}.npy", *kind))
            for key, kind in kinds_of(layout).items()
        }
        for first, last in runs_of(offsets, CHUNK):
            where = slice(offsets[first], offsets[last])
            rows = raw[where].astype(np.float32) @ turn
            if base is not None:
                rows -= base(where)
            for key, array in coded(rows, offsets[first : last + 1] - offsets[first], layout).items():
                writers[key].append(array)


def kinds_of(layout: SetLayout) -> dict[str, tuple[type[np.generic], tuple[int, ...]]]:
    """The arrays of a set of few bits: for its rows, and for its documents' centres."""
    of_centres = CODEC.layout(layout.dim)
    return {
        **cast(Bits, CODECS[layout.codec]).layout(layout.dim),
        "centres": of_centres["values"],
        "centre_scales": of_centres["scales"],
    }


def coded(
    rows: Float[np.ndarray, "n d"], offsets: Int[np.ndarray, " b1"], layout: SetLayout
) -> dict[str, np.ndarray]:
    """The arrays of some documents, as listed by `kinds_of`, whose rows begin at `offsets`.

    The rows are rotated, minus their words' means or their centroids; they are changed in place.

    Raises:
        DataError: a row is too large for a scale of float16.
    """
    with np.errstate(over="ignore"):
        centres = centres_of(rows, offsets)
        rows -= np.repeat(centres.decoded(), np.diff(offsets), axis=0)
        arrays = cast(Bits, CODECS[layout.codec]).packed(rows) | centres.arrays("centre")
    if not all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f"):
        raise DataError(f"a vector is too large for {layout.codec}; use float32. Nothing was indexed")
    return arrays


def _base(
    folder: Path, name: str, layout: SetLayout, raw: Float[np.ndarray, "n d"]
) -> Callable[[slice], Float[np.ndarray, "k d"]] | None:
    """A function from a slice of rows to their means or centroids; None if there are neither."""
    if layout.ids:
        ranks = open_npy(folder / f"{name}.ranks.npy")
        means = _fitted(folder, name, raw, ranks)
        return lambda where: means.rows(means.place_of_rank[ranks[where]])
    count = count_for(len(raw)) if layout.kind == "lists" else 0
    if not count:
        return None
    write_centroids(folder, name, raw, count)
    centroids = Centroids(CheckedFolder(folder), name, layout.dim, len(raw))
    return lambda where: centroids.rows(centroids.of(where))


def _fitted(folder: Path, name: str, raw: Float[np.ndarray, "n d"], ranks: Int[np.ndarray, " n"]) -> Means:
    """Fit and write the means of words in enough documents; return them as they are stored."""
    frequencies = np.load(folder / f"{name}.frequencies.npy")
    chosen = np.flatnonzero(frequencies >= LEAST)
    sums, counts = _sums(raw, ranks, chosen, len(frequencies))
    means = Table.of((sums / counts[:, None]).astype(np.float32))
    write_means(folder, name, means, chosen)
    return Means(means, chosen, len(frequencies))


def _sums(
    raw: Float[np.ndarray, "n d"], ranks: Int[np.ndarray, " n"], chosen: Int[np.ndarray, " c"], words: int
) -> tuple[Float[np.ndarray, "c d"], Int[np.ndarray, " c"]]:
    """The sum of the rotated rows of each chosen word, added in order, and the number of rows."""
    place = np.full(words, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    sums, counts = np.zeros((len(chosen), raw.shape[1]), np.float64), np.zeros(len(chosen), np.int64)
    for at in range(0, len(raw), CHUNK):
        places = place[ranks[at : at + CHUNK]]
        mine = np.flatnonzero(places >= 0)
        order = mine[np.argsort(places[mine], kind="stable")]
        if len(order):
            words_here, first = np.unique(places[order], return_index=True)
            sums[words_here] += np.add.reduceat(raw[at : at + CHUNK][order].astype(np.float64), first, axis=0)
            counts += np.bincount(places[mine], minlength=len(chosen))
    return sums.astype(np.float32) @ rotation(raw.shape[1]), counts
