"""What a model of ColBERTer's kind stores, as the paper counts it."""

from __future__ import annotations

from counterpoint.errors import ConfigError

__all__ = ["stored_bytes"]

COMPONENT = 2  # bytes: half precision
ID = 4  # bytes of a word's id, where words match exactly


def stored_bytes(
    documents: int, vectors: float, dim: int, *, exact: bool = False, pooled: int = 128
) -> float:
    """Bytes of all vectors of a collection, as Hofstätter et al. 2022 count them (table 5, figure 4).

    Every document has a pooled vector, every word a vector and, where words match exactly, its id. Texts,
    offsets and ids of documents are not counted; `counterpoint info` counts what an index really takes.

    Args:
        documents: how many.
        vectors: of words a document, on average.
        dim: components of a word's vector.
        exact: whether words match exactly, so that their ids are kept.
        pooled: components of the pooled vector; 0 where there is none.

    Raises:
        ConfigError: a number below 0.

    Example:
        >>> round(stored_bytes(8_841_823, 21.6, 1, exact=True) / 2**30, 1)  # Uni-ColBERTer, MS MARCO
        3.2
    """
    if min(documents, vectors, dim, pooled) < 0:
        raise ConfigError(
            f"storage: expected no number below 0, found {documents}, {vectors}, {dim}, {pooled}"
        )
    return documents * (COMPONENT * pooled + vectors * (COMPONENT * dim + ID * exact))
