"""Inputs of a graph for a tokenised query, apart from its embeddings."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from counterpoint.encode.rows import Row, map_words
from counterpoint.encode.words import WordSettings

__all__ = ["bias_of", "mean_of", "words_of"]

LOWEST = np.finfo(np.float32).min


def bias_of(row: Row) -> Float[np.ndarray, " t"]:
    """Bias of attention scores: 0, or a value so low that a position gets no attention."""
    return np.where(row.attended, np.float32(0), LOWEST)


def mean_of(row: Row) -> Float[np.ndarray, "1 t"]:
    """The weights of a mean over the attended positions."""
    attended = row.attended.astype(np.float32)[None]
    return attended / np.maximum(attended.sum(), np.float32(1))


def words_of(row: Row, settings: WordSettings) -> tuple[Int[np.ndarray, " w"], Float[np.ndarray, "w t"]]:
    """The ids of the distinct words, and for each the weights of the mean over its positions."""
    ids, rows, _ = map_words(row, settings)
    member = (rows.T[None] == np.arange(len(ids))[:, None, None]).any(1).astype(np.float32)
    return ids, member / np.maximum(member.sum(1, keepdims=True), np.float32(1))
