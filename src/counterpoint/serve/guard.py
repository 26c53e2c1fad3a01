"""What every request passes: keys, limits, a request id, metrics and one line of log."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, final
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterpoint.serve.metrics import Metrics
from counterpoint.serve.problems import response_of
from counterpoint.serve.running import LOGGER
from counterpoint.serve.settings import ServeSettings

__all__ = ["Guard"]

OPEN = frozenset({"/healthz", "/readyz", "/", "/docs"})
PAGE = "/page/"
"""Paths that need no key: load balancers ask some, and the pages ask for a key themselves."""
LOCAL = ("localhost", "127.0.0.1", "::1")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = (*SAFE, "POST", "PUT", "PATCH", "DELETE")
"""Methods that metrics name. Others are the text of a client, without end."""
READS = frozenset({"search", "run", "rerank", "encode", "embeddings"})
"""The last part of a path whose POST changes nothing. Every other POST needs a write key."""
CLOSE = {"connection": "close"}
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
HEADERS: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": POLICY,
    "cache-control": "no-store",
}


@final
class Guard:
    """The outermost layer of the application.

    Args:
        app: what is guarded.
        settings: of the server.
        metrics: counts requests.
    """

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics):
        self._app, self._settings, self._metrics = app, settings, metrics
        # Before keys: a browser asks without one whether a page may send it, and a page may read a refusal.
        self._checked: ASGIApp = self._pass
        if settings.cors:
            self._checked = CORSMiddleware(
                self._pass,
                allow_origins=list(settings.cors),
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["authorization", "content-type", "x-api-key"],
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        state = scope.setdefault("state", {})
        state["request_id"] = request = secrets.token_hex(8)
        status = HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = MutableHeaders(scope=message)
                sent["x-request-id"] = request
                for name, value in HEADERS.items():
                    sent.setdefault(name, value)
            await send(message)

        try:
            await self._checked(scope, _limited(receive, self._settings), answer)
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.request(method, route, status, seconds)
            self._log(scope, state, status, seconds)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        refused = self._refused(scope, Headers(scope=scope))
        await (self._app if refused is None else refused)(scope, receive, send)

    def _refused(self, scope: Scope, headers: Headers) -> Any:
        """The response to a request that may not pass; None if it may."""
        path, method = scope["path"], scope["method"]
        if not (self._settings.read_keys or self._settings.write_keys):
            # A page of another site can reach a server on this machine under a name of its own.
            if self._settings.is_loopback and _host_of(headers) not in (*LOCAL, self._settings.host):
                detail = f"this server answers to {', '.join(LOCAL)} only"
                return response_of(HTTPStatus.FORBIDDEN, detail)
        elif (
            path not in OPEN
            and not path.startswith(PAGE)
            and (problem := self._without_key(path, method, headers))
        ):
            return problem
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._settings.max_body:
            most = f"the body has {int(length):,} bytes; the most is {self._settings.max_body:,}"
            return response_of(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, most)
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
        has_body = length != "0" or "transfer-encoding" in headers
        if method not in SAFE and has_body and kind != "application/json":
            # Other types are sent by forms of any page without asking first.
            return response_of(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON, with content-type: application/json"
            )
        return None

    def _without_key(self, path: str, method: str, headers: Headers) -> Any:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        may_write = _is_one_of(given, self._settings.write_keys)
        may_read = _is_one_of(given, self._settings.read_keys) or may_write
        reads = method in SAFE or (method == "POST" and path.rsplit("/", 1)[-1] in READS)
        if not may_read:
            detail = "this server does not know this key" if given else "this request needs a key"
            detail += "; send authorization: Bearer KEY"
            return response_of(HTTPStatus.UNAUTHORIZED, detail, {"www-authenticate": "Bearer"})
        if not reads and not may_write:
            return response_of(HTTPStatus.FORBIDDEN, "this key may search, and not change an index")
        return None

    def _log(self, scope: Scope, state: Mapping[str, Any], status: int, seconds: float) -> None:
        line = {
            "request": state["request_id"], "method": scope["method"], "path": scope["path"],
            "status": status, "milliseconds": round(1000 * seconds, 1),
        }  # fmt: skip
        if self._settings.log_texts and "texts" in state:
            line["texts"] = state["texts"]
        if "fault" in state:
            line["fault"] = state["fault"]
        LOGGER.log(logging.ERROR if status >= 500 else logging.INFO, line)


def _host_of(headers: Headers) -> str | None:
    """The name by which the server is called, without the port; None if it is malformed."""
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname
    except ValueError:
        return None


def _is_one_of(given: str, keys: tuple[str, ...]) -> bool:
    """Whether it is one of the keys. Takes as long for every text of a length."""
    found = False
    for key in keys:
        found |= secrets.compare_digest(given.encode(), key.encode())
    return found


def _limited(receive: Receive, settings: ServeSettings) -> Receive:
    """The same body, up to a number of bytes and a time; `content-length` may be absent or wrong."""
    seen, whole, end = 0, False, time.monotonic() + settings.seconds

    async def counted() -> Message:
        nonlocal seen, whole
        if whole:  # what comes now is the end of the connection
            return await receive()
        try:
            with anyio.fail_after(end - time.monotonic()):
                message = await receive()
        except TimeoutError:
            late = f"the body did not arrive in {settings.seconds:g} seconds"
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, late, CLOSE) from None
        seen, whole = seen + len(message.get("body", b"")), not message.get("more_body", False)
        if seen > settings.max_body:
            most = f"the body has more than {settings.max_body:,} bytes"
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, most, CLOSE)
        return message

    return counted
