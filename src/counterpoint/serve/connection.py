"""`Connection`: one of a bounded number, cut if its client is too slow. uvicorn alone does neither."""

from __future__ import annotations

import asyncio
from typing import Any, final

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection"]

FULL = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n"


@final
class Connection(H11Protocol):
    """Bounds the time in which the server waits for a client.

    This is the time from the beginning of the connection, or from the end of an answer, until the head of the
    next request is complete; and the time in which an answer that fills the buffers is read. The guard bounds
    the time for a body to arrive. (uvicorn closes a connection without any request after
    `timeout_keep_alive`, but only until its first byte, and not before its first request.)

    Args:
        seconds: how long.
        most: how many connections may be open. One more is answered 503 and closed before it is read.
        given: uvicorn's own arguments.
    """

    def __init__(self, seconds: float, most: int, **given: Any):
        super().__init__(**given)
        self._seconds, self._most = seconds, most
        self._timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.write(FULL)
            transport.close()
        else:
            self._wait()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    @override
    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait()

    @override
    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request; or close, if an answer has begun already."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _wait(self) -> None:
        self._stop()
        self._timer = self.loop.call_later(self._seconds, self._cut)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _cut(self) -> None:
        """Close the connection, unless a request is being answered and the client reads."""
        if self.cycle is None or self.cycle.response_complete or self.flow.write_paused:
            self.transport.abort()
