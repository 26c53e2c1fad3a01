"""One segment's share of a vector set: what a store opens, and what a compaction merges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Int

from counterpoint.index.checked import CheckedFolder
from counterpoint.index.layout import SetLayout

__all__ = ["Piece"]


@final
@dataclass(frozen=True)
class Piece:
    """Files of one vector set in one segment.

    Attributes:
        files: of the segment.
        documents: how many rows its database has, deleted ones among them.
        layout: how the set is stored there. Segments of one index may differ in the codec: documents that
            were added wait in 8 bits for the compaction that codes them.
        live: which of the documents are not deleted; None where none is.
    """

    files: CheckedFolder
    documents: int
    layout: SetLayout
    live: Bool[np.ndarray, " n"] | None = None

    @property
    def rows(self) -> Int[np.ndarray, " k"]:
        """The documents that are not deleted, rising."""
        return np.arange(self.documents) if self.live is None else np.flatnonzero(self.live)
