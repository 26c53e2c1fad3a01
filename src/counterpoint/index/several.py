"""Multi-vector sets, compared by MaxSim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from counterpoint.index.store import PROBES, Asked, Everything
from counterpoint.index.stored_rows import RowsStore

__all__ = ["SeveralStore"]


@final
class SeveralStore(RowsStore):
    """A multi-vector set whose vectors are all scored."""

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False, probes: int = PROBES) -> Everything:
        """Score every document."""
        return Everything(self.all_scores(queries), matching=queries[0].ids is not None)
