"""Threads for searches, and one place where queries are encoded together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Any, TypeVar, final

import anyio
import anyio.to_thread

from counterpoint.serve.problems import Problem

__all__ = ["Threads", "Together"]

Result = TypeVar("Result")
BUSY = {"retry-after": "1"}


@final
class Threads:
    """A bounded number of threads, with a bounded number of requests that wait for one.

    Args:
        threads: how many run at the same time.
        waiting: how many may wait.
        seconds: time for a request, waiting included. None for no limit: what was accepted is finished, even
            if the client leaves.
        busy: told how many run or wait.
    """

    def __init__(
        self,
        threads: int,
        waiting: int,
        seconds: float | None = None,
        busy: Callable[[int], None] = lambda count: None,
    ):
        self._most, self._seconds, self._told = threads + waiting, seconds, busy
        self._pool = ThreadPoolExecutor(threads)
        self._busy = 0

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run a function in a thread. One that runs when its time is over keeps its thread until it ends.

        Raises:
            Problem: too many requests wait already (503), or it took too long (503).
        """
        if self._busy >= self._most:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests wait already; try again", BUSY)
        self._count(1)
        loop, working = asyncio.get_running_loop(), self._pool.submit(work)

        def ended(_: Future[Result]) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(self._count, -1)

        working.add_done_callback(ended)
        try:
            with anyio.fail_after(self._seconds), anyio.CancelScope(shield=self._seconds is None):
                return await asyncio.wrap_future(working)
        except TimeoutError:
            pass
        raise _late(self._seconds or 0.0)

    def _count(self, more: int) -> None:
        self._busy += more
        self._told(self._busy)


@final
class Together:
    """Encodes the queries that wait at the same time in one call.

    For models of which a call of several queries takes little longer than one of a single query. Nothing
    waits for a batch to fill: whatever came while the last call ran is encoded next.

    Args:
        waiting: how many queries may wait.
        seconds: time for a request, waiting included.
        encoded: told how many queries a call has.
    """

    MOST = 32

    def __init__(self, waiting: int, seconds: float, encoded: Callable[[int], None] = lambda count: None):
        self._most, self._seconds, self._told = waiting, seconds, encoded
        self._waiting: list[tuple[Callable[[list[str]], Any], str, asyncio.Future[None]]] = []
        self._running: asyncio.Task[None] | None = None
        self._limiter = anyio.CapacityLimiter(1)

    async def encode(self, encode: Callable[[list[str]], Any], texts: list[str]) -> None:
        """Have queries encoded by a function that keeps their vectors.

        Args:
            encode: takes a list of texts. Texts of the same function are encoded together.
            texts: queries.

        Raises:
            Problem: too many queries wait already (503), or it took too long (503).
        """
        if len(self._waiting) + len(texts) > self._most:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests wait already; try again", BUSY)
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in texts]
        self._waiting += [(encode, text, future) for text, future in zip(texts, futures, strict=True)]
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._work())
        try:
            with anyio.fail_after(self._seconds):
                await asyncio.gather(*futures)
        except TimeoutError:
            raise _late(self._seconds) from None

    async def _work(self) -> None:
        while self._waiting:
            encode = self._waiting[0][0]
            batch = [each for each in self._waiting if each[0] == encode][: self.MOST]
            self._waiting = [each for each in self._waiting if each not in batch]
            texts = list(dict.fromkeys(text for _, text, _ in batch))
            self._told(len(texts))
            waiting = [future for _, _, future in batch]
            try:
                await anyio.to_thread.run_sync(encode, texts, limiter=self._limiter)
            except Exception as error:  # everybody who waits for this call gets it
                for future in waiting:
                    if not future.done():
                        future.set_exception(error)
            for future in waiting:
                if not future.done():
                    future.set_result(None)


def _late(seconds: float) -> Problem:
    detail = f"this took more than {seconds:g} seconds; ask for less"
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, BUSY)
