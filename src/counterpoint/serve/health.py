"""Health of an index: truncated passages, the geometry of its vectors, and the overlap of its parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index import Index
from counterpoint.measure import share_of
from counterpoint.measure.alignment import participation_ratio, spectrum
from counterpoint.measure.isotropy import isotropy
from counterpoint.search import LEXICAL, Run, Searcher
from counterpoint.search.recall import sampled_queries

__all__ = ["health_of"]

QUERIES = 100  # documents whose title is searched for
K = 10  # documents of each part that are compared
VECTORS = 2000  # of a set, at most
BARS = 20  # of a histogram, at most
POINTS = 64  # of a curve, at most


def health_of(searcher: Searcher) -> dict[str, Any]:
    """Measure an index on samples of at most `VECTORS` vectors per set and `QUERIES` queries.

    `truncated` counts passages that are longer than the model reads; it is None if they were not counted.
    `sets` has vectors per passage and isotropy by vector set. `parts` has the overlap of the first `K`
    documents of each part; it is None if there is only one part.
    """
    index = searcher.index
    found = index.disk_usage()
    truncated = None
    if found["longer_than_model"] is not None:
        truncated = {"passages": found["longer_than_model"], "model_reads": found["model_reads"]}
    return {
        "documents": found["documents"],
        "passages": found["passages"],
        "deleted": found["deleted"],
        "truncated": truncated,
        "sets": {name: _set(index, name, found["sets"][name]) for name in index.layouts},
        "parts": _parts(searcher),
    }


def _set(index: Index, name: str, found: dict[str, Any]) -> dict[str, Any]:
    kept = ("codec", "static", "vectors", "vectors_per_document", "bytes_per_vector")
    return {
        "components": found["dim"],
        "pooled": index.layouts[name].pooled,
        **{key: found[key] for key in kept},
        "lengths": _lengths(index.sets[name].lengths[index.positions]),
        "isotropy": _isotropy(_some_vectors(index, name)),
    }


def _lengths(lengths: Int[np.ndarray, " n"]) -> dict[str, Any] | None:
    """A histogram of vectors per passage; None without passages, or if all have as many."""
    if not len(lengths) or lengths.min() == lengths.max():
        return None
    bars = min(BARS, int(lengths.max() - lengths.min()) + 1)
    counts, edges = np.histogram(lengths, bars)
    return {"median": float(np.median(lengths)), "edges": edges.tolist(), "passages": counts.tolist()}


def _some_vectors(index: Index, name: str) -> Float[np.ndarray, "n d"]:
    """Vectors of passages that are drawn at random."""
    drawn = np.random.default_rng(0).permutation(index.positions)[:VECTORS]
    each = max(index.mean_rows(name, drawn), 1.0)
    drawn = np.sort(drawn[: math.ceil(VECTORS / each)])
    return index.take(name, drawn).values[:VECTORS]


def _isotropy(rows: Float[np.ndarray, "n d"]) -> dict[str, Any] | None:
    """None if there are fewer than two vectors.

    `variance` is the cumulative share of the variance along the first principal directions, at `directions`.
    """
    if len(rows) < 2:
        return None
    found, variances = isotropy(rows), spectrum(rows)
    at = np.unique(np.linspace(0, len(variances) - 1, POINTS).astype(np.int64))
    return {
        "vectors": found.rows,
        "cosine": found.cosine,
        "partition": found.partition,
        "iso_score": found.iso_score,
        "outliers": len(found.outliers),
        "rank": participation_ratio(variances),
        "directions": (at + 1).tolist(),
        "variance": (np.cumsum(variances)[at] / (variances.sum() or 1.0)).tolist(),
    }


def _parts(searcher: Searcher) -> dict[str, Any] | None:
    """Overlap of the parts' first documents, and the parts that find a document by its own title."""
    index = searcher.index
    parts = [*([LEXICAL] if index.lexical is not None else []), *index.layouts]
    queries = sampled_queries(index, QUERIES)
    if len(parts) < 2 or not queries:
        return None
    owners = {name: {index.parents.get(name, name): 1} for name in queries}
    runs: dict[str, Run] = searcher.rank_parts(queries, K, parts)
    shared = share_of(runs, owners, K)
    hybrid = share_of({**runs, "hybrid": searcher.run(queries, K)}, owners, K)
    return {
        "queries": len(queries),
        "k": K,
        "documents": shared.found.to_dict(),
        "known_items": shared.answered.to_dict(),
        "hybrid_finds": hybrid.answered.size("hybrid"),
    }
