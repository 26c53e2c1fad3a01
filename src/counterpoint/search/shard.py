"""`Shard`: one shard of an index, searched on its own for a search over all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int, UInt8

from counterpoint.errors import ArtifactError
from counterpoint.index import Among, Index, TextModel

__all__ = ["CommitMoved", "Found", "Shard"]

KEPT = 2  # commits that stay open, so that a search of the last one can end

Found = tuple[Int[np.ndarray, " c"], Float[np.ndarray, " c"]]
"""Positions within the shard, and the exact scores there."""


class CommitMoved(ArtifactError):
    """The index has another commit now than the search is of. Search again."""


@final
class Shard:
    """One shard, open for reading.

    It opens the whole index for its counts (document frequencies and lengths), and scores the documents of
    its shard only. Every call names the commit that it is of, so that a search never mixes two.

    Args:
        folder: of the whole index.
        number: of the shard.
        model: gives the model of an index with static sets.
    """

    def __init__(self, folder: str | Path, number: int, model: Callable[[Index], TextModel]):
        self.number = number
        self._model = model
        self._index = Index(folder)
        self._known: dict[str, Index] = {}

    def best(
        self,
        commit: str,
        part: str,
        queries: Sequence[Any],
        k: int,
        *,
        allowed: UInt8[np.ndarray, " b"] | None = None,
        **effort: Any,
    ) -> list[Found]:
        """For each query, the best `k` documents of the shard by one part.

        Args:
            commit: of the index.
            part: a vector set, or BM25.
            queries: for the store of the part.
            k: how many.
            allowed: one bit per position of the shard, packed: whether the document may be found.
            effort: `exhaustive` and `probes`, as for `Store.look`.

        Raises:
            CommitMoved: the index has another commit.
        """
        index = self._at(commit)
        store = index.part(part)
        marked = None if allowed is None else np.unpackbits(allowed, count=index.end).astype(bool)
        among = Among(index.live if marked is None else marked, index.order)
        look = store.look(queries, **effort)
        found = []
        for i, query in enumerate(queries):
            positions = look.best(i, k, among)
            known = look.known(i, positions)
            found.append((positions, store.scores(query, positions) if known is None else known))
        return found

    def scores(
        self, commit: str, part: str, query: Any, positions: Int[np.ndarray, " k"]
    ) -> Float[np.ndarray, " k"]:
        """The exact scores of some documents of the shard by one part.

        Raises:
            CommitMoved: the index has another commit.
        """
        return self._at(commit).part(part).scores(query, positions)

    def alive(self) -> bool:
        """Return True; for those who ask whether it answers."""
        return True

    def _at(self, commit: str) -> Index:
        known = self._known.get(commit)
        if known is None:
            self._index = self._index.refreshed()
            now = self._index.manifest.commit
            if now != commit:
                raise CommitMoved(f"the index is at commit {now}, not {commit}; search again")
            known = self._index.shard(self.number)
            if any(layout.kind == "static" for layout in known.layouts.values()):
                known = known.bound(self._model(known))
            self._known = dict([*self._known.items(), (now, known)][-KEPT:])
        return known
