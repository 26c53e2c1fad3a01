"""`Server`: what all routes share, and how they get it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated, final

import anyio.to_thread
from fastapi import Depends, FastAPI, Request

from counterpoint.library.options import SearchOptions
from counterpoint.serve.metrics import Metrics
from counterpoint.serve.problems import Problem
from counterpoint.serve.served import Served
from counterpoint.serve.settings import ServeSettings
from counterpoint.serve.work import Threads, Together

__all__ = ["NamedIndex", "Server", "Shared", "too_much"]


def too_much(what: str) -> Problem:
    """The problem of a request beyond a limit."""
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, what)


@final
class Server:
    """What the routes share."""

    def __init__(self, indexes: Mapping[str, Served], settings: ServeSettings):
        self.indexes, self.settings, self.metrics = indexes, settings, Metrics()
        self.together = Together(
            settings.waiting + settings.max_batch, settings.seconds, self.metrics.encoded.observe
        )
        self.threads = Threads(settings.threads, settings.waiting, settings.seconds, self.metrics.busy.set)
        self.writes = Threads(len(indexes), settings.waiting)
        self.measures = Threads(1, settings.waiting)  # one at a time: the next one finds it measured
        self.ready = False

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Load the encoders before the first request; close the indexes after the last."""
        for served in self.indexes.values():
            await anyio.to_thread.run_sync(served.warm)
        self.ready = True
        yield
        self.ready = False
        for served in self.indexes.values():
            served.close()

    def named(self, index: str) -> Served:
        """An index by name."""
        if index not in self.indexes:
            detail = f"there is no index {index!r}; there are {', '.join(self.indexes)}"
            raise Problem(HTTPStatus.NOT_FOUND, detail)
        return self.indexes[index]

    def check(self, texts: list[str], k: int = 1) -> None:
        """Check the limits of a request: its queries, and how many documents it asks for."""
        most = self.settings
        self.check_texts(texts, most.max_query)
        if k > most.max_k:
            raise too_much(f"k is {k:,}; the most is {most.max_k:,}")

    def check_texts(self, texts: list[str], longest: int) -> None:
        """Check the limits of a request's texts, of which none may have more than `longest` characters."""
        if len(texts) > self.settings.max_batch:
            raise too_much(f"{len(texts):,} texts; the most is {self.settings.max_batch:,}")
        if (found := max(map(len, texts), default=0)) > longest:
            raise too_much(f"a text has {found:,} characters; the most is {longest:,}")

    async def encoded(self, served: Served, texts: list[str], options: SearchOptions) -> None:
        """Encode queries together with those of other requests, so that their searches find the vectors.

        Nothing is done where this is not faster: then each search encodes its own query, in its thread.
        """
        if served.batches(options):
            model = await self.threads.run(lambda: served.searcher(options).model)
            if model is not None:
                await self.together.encode(model.encode_query, texts)


# Asynchronous, because FastAPI calls other dependencies in threads, which takes longer than they do.
async def _server(request: Request) -> Server:
    return request.app.state.server


async def _index(index: str, request: Request) -> Served:
    return request.app.state.server.named(index)


Shared = Annotated[Server, Depends(_server)]
"""A route's argument: the server."""
NamedIndex = Annotated[Served, Depends(_index)]
"""A route's argument: the index in its address."""
