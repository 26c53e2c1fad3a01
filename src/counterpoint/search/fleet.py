"""Search an index whose shards are elsewhere: other threads, processes or machines.

`Searcher` stays as it is. It asks stores for candidates and for exact scores; `FleetStore` passes the
questions on to the shards and puts their answers together. Documents, ids and counts are read from the index
itself, which must be at hand where the search runs.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from jaxtyping import Float, Int
from typing_extensions import override

from counterpoint.errors import CounterpointError
from counterpoint.index import EVERY, PROBES, Among, Index, Look, Store, best_of
from counterpoint.search.shard import Shard

__all__ = ["SECONDS", "Fleet", "ShardGone", "Threads", "Waiting", "shard_starts"]


SECONDS = 30.0  # for a search
ALIVE = 5.0  # seconds in which a shard must say that it is alive
NOTHING = np.zeros(0, np.int64), np.zeros(0, np.float32)


class ShardGone(CounterpointError):
    """A shard gives no answer."""


class Waiting(Protocol):
    """The result of a call that is under way."""

    def result(self, timeout: float | None = None) -> Any:
        """Wait for it; raise what the call raised, or `TimeoutError`."""
        ...

    def cancel(self) -> object:
        """Wait no longer."""
        ...


@final
@dataclass
class _Search:
    """One search: when it must end, whether shards may be missing, and which are."""

    end: float
    partial: bool
    missing: set[int] = field(default_factory=set)


class Fleet(ABC):
    """The shards of an index.

    Args:
        partial: answer from the shards that are there; otherwise a missing shard is an error.
        seconds: time for a search. It asks the shards several times. Each time, they have half of what is
            left to answer. So time is left for the others after one that hangs.
    """

    def __init__(self, partial: bool = False, seconds: float = SECONDS):
        self.partial, self._seconds = partial, seconds
        self._now = threading.local()

    @abstractmethod
    def send(self, number: int, call: str, *given: Any, **named: Any) -> Waiting:
        """Call a method of a shard (see `Shard`). The result raises `ShardGone` if the shard is gone."""

    @abstractmethod
    def close(self) -> None:
        """Let go of all shards."""

    def over(self, index: Index) -> Index:
        """The index, searched by these shards."""
        return index.searched_by(lambda part: FleetStore(self, index, part))

    def watched(self, whole: bool = False) -> AbstractContextManager[set[int]]:
        """Limit the time of the search in the block; yield the shards that gave no answer.

        Args:
            whole: a missing shard is an error, even if the fleet may answer without it.
        """
        return self._searching(_Search(time.monotonic() + self._seconds, self.partial and not whole))

    @contextmanager
    def _searching(self, search: _Search) -> Iterator[set[int]]:
        self._now.search = search
        try:
            yield search.missing
        finally:
            del self._now.search

    @property
    def _search(self) -> _Search | None:
        return getattr(self._now, "search", None)

    @property
    def missing(self) -> frozenset[int]:
        """The shards that gave no answer to the search of this thread. It asks them no more."""
        return frozenset() if self._search is None else frozenset(self._search.missing)

    def silent(self, index: Index) -> set[int]:
        """The shards of an index that do not answer at the moment."""
        with self._searching(_Search(time.monotonic() + 2 * ALIVE, partial=True)) as missing:
            self.gathered({number: self.send(number, "alive") for number in shard_starts(index)})
        return missing

    def gathered(self, waiting: Mapping[int, Waiting], *, whole: bool = False) -> dict[int, Any]:
        """The results of calls by shard, without those of missing shards if that is allowed.

        Raises:
            ShardGone: a shard is missing, and all are needed (`whole`) or must be there.
        """
        found, search, now = {}, self._search, time.monotonic()
        given = self._seconds if search is None else max(0.0, search.end - now) / 2
        for number, future in waiting.items():
            try:
                found[number] = _answer(future, number, now + given, given)
            except ShardGone:
                if whole or search is None or not search.partial:
                    raise
                search.missing.add(number)
        return found


def _answer(future: Waiting, number: int, end: float, given: float) -> Any:
    """What a shard answers.

    Raises:
        ShardGone: nothing, until the end.
    """
    try:
        return future.result(max(0.0, end - time.monotonic()))
    except TimeoutError as error:
        future.cancel()
        raise ShardGone(f"shard {number} gives no answer in {given:.3g} seconds") from error


@final
class Threads(Fleet):
    """Shards in threads of this process.

    Args:
        shards: to search.
        partial: as for `Fleet`.
        seconds: as for `Fleet`.
    """

    def __init__(self, shards: Sequence[Shard], partial: bool = False, seconds: float = SECONDS):
        super().__init__(partial, seconds)
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
            if number in store.fleet.missing:
                continue
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
