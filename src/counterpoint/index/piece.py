"""One segment's part of a vector set, which stores open and compactions merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool

from counterpoint.index.checked import CheckedFolder
from counterpoint.index.layout import SetLayout

__all__ = ["Piece"]


@final
@dataclass(frozen=True)
class Piece:
    """Files of one vector set in one segment.

    Attributes:
        files: of the segment.
        documents: number of rows of its database, including deleted documents.
        layout: how the set is stored there. The codec may differ between segments: added documents are kept
            in 8 bits until a compaction encodes them in fewer.
        live: for each document, whether it is not deleted; None if none is deleted.
    """

    files: CheckedFolder
    documents: int
    layout: SetLayout
    live: Bool[np.ndarray, " n"] | None = None
