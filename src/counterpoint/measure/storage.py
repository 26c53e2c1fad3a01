"""Storage of a ColBERTer-like model, as the paper counts it."""

from __future__ import annotations

from counterpoint.errors import ConfigError

__all__ = ["stored_bytes"]

COMPONENT = 2  # bytes: half precision
ID = 4  # bytes of a word's id, for exact matching


def stored_bytes(
    documents: int, vectors: float, dim: int, *, exact: bool = False, pooled: int = 128
) -> float:
    """Bytes of all vectors of a collection, as Hofstätter et al. 2022 count them (table 5, figure 4).

    Every document has a pooled vector. Every word has a vector and, with exact matching, its id. Texts,
    offsets and document ids are not counted; `counterpoint info` shows the disk usage of an index.

    Args:
        documents: number of documents.
        vectors: mean number of word vectors per document.
        dim: components of a word's vector.
        exact: whether words match exactly, so that their ids are stored.
        pooled: components of the pooled vector; 0 if there is none.

    Raises:
        ConfigError: a number is below 0.

    Example:
        >>> round(stored_bytes(8_841_823, 21.6, 1, exact=True) / 2**30, 1)  # Uni-ColBERTer, MS MARCO
        3.2
    """
    if min(documents, vectors, dim, pooled) < 0:
        raise ConfigError(
            f"storage: numbers must be at least 0, found {documents}, {vectors}, {dim}, {pooled}"
        )
    return documents * (COMPONENT * pooled + vectors * (COMPONENT * dim + ID * exact))
