"""Whether the server lives, whether it is ready, and its metrics."""

from __future__ import annotations

from http import HTTPStatus

import anyio.to_thread
from fastapi import APIRouter, Response

from counterpoint.serve.problems import Problem
from counterpoint.serve.server import Shared

__all__ = ["router"]

router = APIRouter()


@router.get("/healthz", tags=["server"])
async def alive(server: Shared) -> dict[str, str]:
    """The process runs."""
    return {"status": "ok"}


@router.get("/readyz", tags=["server"])
async def ready(server: Shared) -> dict[str, str]:
    """All indexes are there and open, their encoders loaded, and enough of their shards answer."""
    if not server.ready:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "the indexes are being opened")
    for served in server.indexes.values():
        await anyio.to_thread.run_sync(served.check)
    return {"status": "ready"}


@router.get("/metrics", tags=["server"])
async def metrics(server: Shared) -> Response:
    """Counts and times for Prometheus."""
    for name, served in server.indexes.items():
        server.metrics.documents.labels(name).set(served.count)
    return Response(server.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
