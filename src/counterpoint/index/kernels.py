"""Scores over packed arrays, in numpy. Each function has a slow oracle in the tests and a twin in `score`."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ShapeError
from counterpoint.types import Ragged

__all__ = ["best_rows", "dot_scores", "maxsim_scores"]


def dot_scores(
    queries: Float[np.ndarray, "q d"], documents: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "q n"]:
    """Inner product of every query with every document."""
    _check_dims(queries, documents)
    return queries @ documents.T


def maxsim_scores(query: Float[np.ndarray, "m d"], documents: Ragged) -> Float[np.ndarray, " n"]:
    """MaxSim of one query against packed documents: the sum over query rows of the best inner product.

    An empty query or an empty document scores 0 (ColBERT, eq. 3 over no terms).
    """
    _check_dims(query, documents.values)
    scores = np.zeros(len(documents), np.float32)
    filled = np.flatnonzero(documents.lengths > 0)
    if len(query) and len(filled):
        # reduceat needs strictly increasing starts, so empty documents are left out of it.
        best = np.maximum.reduceat(documents.values @ query.T, documents.offsets[filled], axis=0)
        scores[filled] = best.sum(axis=1)
    return scores


def best_rows(
    query: Float[np.ndarray, "m d"], document: Float[np.ndarray, "t d"]
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """For each query row, the document row that MaxSim takes (the first of equals) and its inner product."""
    similarity = query @ document.T
    best = similarity.argmax(axis=1)
    return best, similarity[np.arange(len(query)), best]


def _check_dims(queries: np.ndarray, documents: np.ndarray) -> None:
    if queries.shape[1] != documents.shape[1]:
        raise ShapeError(
            f"query vectors of {queries.shape[1]} dimensions, document vectors of {documents.shape[1]}; "
            "was the index built with another model?"
        )
