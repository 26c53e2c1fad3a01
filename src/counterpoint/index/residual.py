"""The second pass over a set whose rows are stored as differences from their words' means."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.layout import SetLayout
from counterpoint.index.means import Means, fit_means, write_means
from counterpoint.index.npy import NpyWriter, open_npy
from counterpoint.index.rotation import rotation

__all__ = ["LEAST", "encode_residuals"]

LEAST = 16  # documents of a word with a mean; for fewer it would take about as many bytes as it saves
CHUNK = 2**13  # rows coded at a time


def encode_residuals(folder: Path, name: str, layout: SetLayout) -> None:
    """Code the rows that wait in `<set>.raw.npy`, fit the means, and remove that file.

    Memory grows with the words that have a mean, one vector each, and with nothing else.
    """
    codec = cast(Bits, CODECS[layout.codec])
    raw, ranks = open_npy(folder / f"{name}.raw.npy"), open_npy(folder / f"{name}.ranks.npy")
    frequencies = np.load(folder / f"{name}.frequencies.npy")
    chosen = np.flatnonzero(frequencies >= LEAST)
    arrays = fit_means(*_sums(raw, ranks, chosen, len(frequencies)))
    write_means(folder, name, arrays, chosen)
    means = Means.of(arrays["values"], arrays["scales"], chosen, len(frequencies))
    turn = rotation(layout.dim)
    layouts = codec.layout(layout.dim)
    writers = {key: NpyWriter(folder / f"{name}.{key}.npy", *kind) for key, kind in layouts.items()}
    for at in range(0, len(raw), CHUNK):
        rotated = raw[at : at + CHUNK].astype(np.float32) @ turn
        rotated -= means.rows(means.place_of_rank[ranks[at : at + CHUNK]])
        for key, rows in codec.packed(rotated).items():
            writers[key].append(rows)
    for writer in writers.values():
        writer.close()
    (folder / f"{name}.raw.npy").unlink()


def _sums(
    raw: Float[np.ndarray, "n d"], ranks: Int[np.ndarray, " n"], chosen: Int[np.ndarray, " c"], words: int
) -> tuple[Float[np.ndarray, "c d"], Int[np.ndarray, " c"]]:
    """The sum of the rotated rows of each chosen word, added in their order, and how many rows these are."""
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
