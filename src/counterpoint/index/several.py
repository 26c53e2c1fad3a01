"""Several vectors a document, compared by MaxSim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from counterpoint.index.store import PROBES, Asked, Everything
from counterpoint.index.stored_rows import RowsStore

__all__ = ["SeveralStore"]


@final
class SeveralStore(RowsStore):
    """A set of several vectors a document, all of which are looked at."""

    def look(self, queries: Sequence[Asked], *, exhaustive: bool = False, probes: int = PROBES) -> Everything:
        """At every vector."""
        return Everything(self.all_scores(queries), matching=queries[0].ids is not None)
