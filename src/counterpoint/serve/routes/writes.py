"""Requests that change an index. The answer names the commit that has the change."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from counterpoint.serve.server import NamedIndex, Shared, too_much
from counterpoint.serve.shapes import AddBody, DeleteBody

__all__ = ["router"]

router = APIRouter()


@router.post("/v1/indexes/{index}/documents", tags=["write"])
async def add(served: NamedIndex, body: AddBody, server: Shared) -> dict[str, Any]:
    """Add documents in one commit. The answer names the commit they are in."""
    if len(body.documents) > server.settings.max_batch:
        most = f"{len(body.documents):,} documents; the most is {server.settings.max_batch:,}"
        raise too_much(most)
    count, commit = await server.writes.run(lambda: served.add(body.documents, body.replace))
    return {"index": served.name, "commit": commit, "added": count}


@router.delete("/v1/indexes/{index}/documents", tags=["write"])
async def delete(served: NamedIndex, body: DeleteBody, server: Shared) -> dict[str, Any]:
    """Delete documents in one commit, by id or by a condition on their metadata."""
    count, commit = await server.writes.run(lambda: served.delete(body.ids, body.where, body.missing_ok))
    return {"index": served.name, "commit": commit, "deleted": count}
