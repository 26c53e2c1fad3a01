"""Search an index whose shards are elsewhere: other threads, processes or machines.

`Searcher` stays as it is. It asks stores for candidates and for exact scores; `FleetStore` passes the
questions on to the shards and puts their answers together. Documents, ids and counts are read from the index
itself, which must be at hand where the search runs.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, final

import numpy as np
from jaxtyping import Float, Int
from typing_extensions import override

from counterpoint.errors import CounterpointError
from counterpoint.index import EVERY, PROBES, Among, Index, Look, Store, best_of
from counterpoint.search.shard import Shard

__all__ = ["Fleet", "ShardGone", "Threads", "Waiting", "shard_starts"]


NOTHING = np.zeros(0, np.int64), np.zeros(0, np.float32)


class ShardGone(CounterpointError):
    """A shard gives no answer."""


class Waiting(Protocol):
    """The result of a call that is under way."""

    def result(self) -> Any:
        """Wait for it; raise what the call raised."""
        ...


class Fleet(ABC):
    """The shards of an index.

    Args:
        partial: answer from the shards that are there; otherwise a missing shard is an error.
    """

    def __init__(self, partial: bool = False):
        self.partial = partial
        self._told = threading.local()

    @abstractmethod
    def send(self, number: int, call: str, *given: Any, **named: Any) -> Waiting:
        """Call a method of a shard (see `Shard`). The result raises `ShardGone` if the shard is gone."""

    @abstractmethod
    def close(self) -> None:
        """Let go of all shards."""

    def over(self, index: Index) -> Index:
        """The index, searched by these shards."""
        return index.searched_by(lambda part: FleetStore(self, index, part))

    @contextmanager
    def watched(self) -> Iterator[set[int]]:
        """Collect the shards that gave no answer in the block, if that is allowed."""
        self._told.missing = missing = set[int]()
        try:
            yield missing
        finally:
            del self._told.missing

    def gathered(self, waiting: Mapping[int, Waiting], *, whole: bool = False) -> dict[int, Any]:
        """The results of calls by shard, without those of missing shards if that is allowed.

        Raises:
            ShardGone: a shard is missing, and all are needed (`whole`) or must be there.
        """
        found = {}
        for number, future in waiting.items():
            try:
                found[number] = future.result()
            except ShardGone:
                missing = getattr(self._told, "missing", None)
                if whole or not self.partial or missing is None:
                    raise
                missing.add(number)
        return found


@final
class Threads(Fleet):
    """Shards in threads of this process.

    Args:
        shards: to search.
        partial: as for `Fleet`.
    """

    def __init__(self, shards: Sequence[Shard], partial: bool = False):
        super().__init__(partial)
        self._shards = {shard.number: shard for shard in shards}
        self._pool = ThreadPoolExecutor(max(1, len(shards)))

    @override
    def send(self, number: int, call: str, *given: Any, **named: Any) -> Future[Any]:
        if number not in self._shards:
            gone: Future[Any] = Future()
            gone.set_exception(ShardGone(f"shard {number} is not there"))
            return gone
        return self._pool.submit(getattr(self._shards[number], call), *given, **named)

    @override
    def close(self) -> None:
        self._pool.shutdown()


@final
class FleetStore(Store[Any]):
    """One part of a score, whose documents are in shards elsewhere.

    Args:
        fleet: the shards.
        index: the commit that is searched.
        part: a vector set, or BM25.
    """

    def __init__(self, fleet: Fleet, index: Index, part: str):
        self.fleet, self.index, self.part = fleet, index, part
        self.commit, self.starts = index.manifest.commit, shard_starts(index)

    @override
    def look(self, queries: Sequence[Any], *, exhaustive: bool = False, probes: int = PROBES) -> Look:
        return _Gathered(self, queries, {"exhaustive": exhaustive, "probes": probes})

    @override
    def scores(self, query: Any, positions: Int[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        found = np.zeros(len(positions), np.float32)
        waiting, places = {}, {}
        for number, (start, end) in self.starts.items():
            mine = np.flatnonzero((positions >= start) & (positions < end))
            if len(mine):
                places[number] = mine
                waiting[number] = self.fleet.send(
                    number, "scores", self.commit, self.part, query, positions[mine] - start
                )
        # A shard that is lost after it has proposed documents must not leave them without scores.
        for number, scores in self.fleet.gathered(waiting, whole=True).items():
            found = found.astype(np.result_type(found, scores), copy=False)
            found[places[number]] = scores
        return found


@final
class _Gathered(Look):
    """The best of all shards; all queries of a batch are asked at once."""

    def __init__(self, store: FleetStore, queries: Sequence[Any], effort: Mapping[str, Any]):
        self._store, self._queries, self._effort = store, queries, effort
        self._found: dict[int, list[list[tuple[np.ndarray, np.ndarray]]]] = {}

    @override
    def best(self, query: int, k: int, among: Among = EVERY) -> Int[np.ndarray, " c"]:
        if k not in self._found:
            self._found[k] = self._asked(k, among)
        positions, scores = zip(*self._found[k][query], strict=True)
        near = np.concatenate(positions)
        return near[best_of(np.concatenate(scores), k, matching=False, order=among.at(near))]

    def _asked(self, k: int, among: Among) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """For each query, what each shard has found; positions are those of the whole index."""
        store, waiting = self._store, {}
        for number, (start, end) in store.starts.items():
            allowed = among.within(start, end).allowed
            waiting[number] = store.fleet.send(
                number, "best", store.commit, store.part, self._queries, k,
                allowed=None if allowed is None else np.packbits(allowed), **self._effort,
            )  # fmt: skip
        answers = store.fleet.gathered(waiting)
        found: list[list[tuple[np.ndarray, np.ndarray]]] = [[NOTHING] for _ in self._queries]
        for number, of_queries in answers.items():
            for mine, (positions, scores) in zip(found, of_queries, strict=True):
                mine.append((positions + store.starts[number][0], scores))
        return found


def shard_starts(index: Index) -> dict[int, tuple[int, int]]:
    """For each shard with documents, its first position, and the position after its last."""
    found: dict[int, tuple[int, int]] = {}
    for segment, start in zip(index.segments, index.starts.tolist(), strict=False):
        number = segment.entry.shard or 0
        first = found.get(number, (start, start))[0]
        found[number] = first, start + segment.documents
    return found
