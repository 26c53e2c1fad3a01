"""numpy: MaxSim by one product of float32 matrices, with every document or the best by pooled vectors."""

import numpy as np

from systems import System

RERANKED = (100, 200, 400, 600, 1000)
"""How many of the best by pooled vectors rerankers score, and our search that proposes by them."""


def build_arrays(files, folder):
    """What systems without an index keep: the vectors as they are, float16."""
    chunks = list(files.chunks())
    np.save(folder / "values.npy", np.concatenate([chunk.values for chunk in chunks]))
    counts = np.concatenate([np.diff(chunk.offsets) for chunk in chunks])
    np.save(folder / "offsets.npy", np.concatenate([[0], np.cumsum(counts)]))
    np.save(folder / "pooled.npy", np.concatenate(list(files.pooled_chunks())).astype(np.float16))


def open_arrays(folder):
    """A float32 array a document, and the pooled vectors."""
    values = np.load(folder / "values.npy").astype(np.float32)
    offsets = np.load(folder / "offsets.npy")
    sets = [values[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]
    return sets, np.load(folder / "pooled.npy").astype(np.float32)


def first_stage(pooled, query, count):
    """Positions of the best by pooled vectors, best first."""
    return best(pooled @ query.pooled, count)


def best(scores, count):
    """Positions of the highest scores, highest first, equal ones by position."""
    count = min(count, len(scores))
    bound = np.partition(scores, len(scores) - count)[len(scores) - count]
    some = np.flatnonzero(scores >= bound)
    return some[np.argsort(-scores[some], kind="stable")][:count]


def opened(files, folder):
    values = np.load(folder / "values.npy").astype(np.float32)
    offsets = np.load(folder / "offsets.npy")

    def ask(query, k):
        scores = np.empty(len(offsets) - 1, np.float32)
        for first in range(0, len(scores), 1000):
            last = min(first + 1000, len(scores))
            similarity = query.tokens @ values[offsets[first] : offsets[last]].T
            starts = offsets[first:last] - offsets[first]
            scores[first:last] = np.maximum.reduceat(similarity, starts, axis=1).sum(axis=0)
        return best(scores, k).tolist()

    return ask


SYSTEMS = {"numpy": System("tokens", ("numpy",), build_arrays, opened, {"every document": {}})}
