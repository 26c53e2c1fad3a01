"""BM25 as a score part with the interface of a vector set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.index.lexical import Lexical
from counterpoint.index.store import PROBES, Everything, Store

__all__ = ["LexicalStore"]


@final
class LexicalStore(Store[str]):
    """BM25; its queries are texts."""

    def __init__(self, lexical: Lexical):
        self._lexical = lexical

    def look(self, queries: Sequence[str], *, exhaustive: bool = False, probes: int = PROBES) -> Everything:
        """Score all documents from the postings of the queries' terms."""
        scores = [self._lexical.scores(text) for text in queries]
        return Everything(scores, matching=True, kernels=self._lexical.kernels)

    def scores(self, query: str, positions: Int[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """BM25 of some documents."""
        return self._lexical.scores(query)[positions]
