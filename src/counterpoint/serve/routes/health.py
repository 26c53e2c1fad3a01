"""Whether the server lives, whether it is ready, and its metrics."""

from __future__ import annotations

from http import HTTPStatus

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
    """All indexes are open and their encoders loaded."""
    if not server.ready:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "the indexes are being opened")
    return {"status": "ready"}


@router.get("/metrics", tags=["server"])
async def metrics(server: Shared) -> Response:
    """Counts and times for Prometheus."""
    for name, served in server.indexes.items():
        server.metrics.documents(name, served.count)
    return Response(server.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
