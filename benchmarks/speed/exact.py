"""The documents that are truly best: by MaxSim, or by pooled vectors, over all of them in float32."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from vector_files import Query

TOGETHER = 50  # documents multiplied at a time
BATCH = 2048  # rows of queries multiplied at a time


def exact_best(files: Any, queries: list[Query], k: int, kind: str, cache: Path) -> dict[str, list[str]]:
    """Ids of the best `k` documents of each query, best first, equal ones by position.

    Args:
        files: the collection.
        queries: what is asked.
        k: how many.
        kind: "tokens" for MaxSim, "pooled" for products of pooled vectors.
        cache: a file that keeps them for the next time.
    """
    wanted = {"documents": files.documents, "queries": [query.id for query in queries], "k": k}
    if cache.exists() and (kept := json.loads(cache.read_text()))["of"] == wanted:
        return kept["best"]
    best = [(np.zeros(0, np.float32), np.zeros(0, np.int64)) for _ in queries]
    done = 0
    for scores in scores_of(files, queries, kind):
        best = [merged(old, new, done, k) for old, new in zip(best, scores, strict=True)]
        done += scores.shape[1]
    named = {
        query.id: [files.ids[at] for at in found] for query, (_, found) in zip(queries, best, strict=True)
    }
    cache.write_text(json.dumps({"of": wanted, "best": named}))
    return named


def scores_of(files, queries: list[Query], kind: str) -> Iterator[np.ndarray]:
    """Scores of each query with all documents, [queries, documents] in float32, a chunk at a time."""
    if kind == "pooled":
        asked = np.stack([query.pooled for query in queries])
        yield from (asked @ pooled.T for pooled in files.pooled_chunks())
    else:
        tokens = [query.tokens for query in queries]
        yield from (maxsim(tokens, chunk.values, chunk.offsets) for chunk in files.chunks())


def maxsim(queries: list[np.ndarray], values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """MaxSim of each query with each document, [queries, documents] in float32."""
    rows, starts = np.concatenate(queries), np.cumsum([0, *map(len, queries[:-1])])
    found = np.empty((len(queries), len(offsets) - 1), np.float32)
    for first in range(0, found.shape[1], TOGETHER):
        last = min(first + TOGETHER, found.shape[1])
        stored = values[offsets[first] : offsets[last]].astype(np.float32)
        at = offsets[first:last] - offsets[first]
        maxima = np.concatenate(
            [
                np.maximum.reduceat(rows[i : i + BATCH] @ stored.T, at, axis=1)
                for i in range(0, len(rows), BATCH)
            ]
        )
        found[:, first:last] = np.add.reduceat(maxima, starts, axis=0)
    return found


def merged(old, scores: np.ndarray, done: int, k: int):
    """The best of those that there were and of a chunk that begins at position `done`."""
    values = np.concatenate([old[0], scores])
    positions = np.concatenate([old[1], done + np.arange(len(scores))])
    kept = np.argsort(-values, kind="stable")[:k]
    return values[kept], positions[kept]
