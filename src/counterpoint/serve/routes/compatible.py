"""Requests in the shapes of other services, for clients that exist."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from fastapi import APIRouter

from counterpoint.library.options import SearchOptions
from counterpoint.serve.server import Shared
from counterpoint.serve.shapes import EmbeddingsBody

__all__ = ["router"]

router = APIRouter()


@router.post("/v1/embeddings", tags=["compatible"])
async def embeddings(body: EmbeddingsBody, server: Shared) -> dict[str, Any]:
    """Query vectors as OpenAI's clients expect them. `model` names an index of this server."""
    served = server.named(body.model)
    texts = [body.input] if isinstance(body.input, str) else body.input
    server.check(texts)
    name = served.pooled_set()
    await server.encoded(served, texts, SearchOptions())
    found = (await server.threads.run(lambda: served.encode(texts, [name])))[name]
    data = [
        {"object": "embedding", "index": at, "embedding": _shown(rows[0], body.encoding_format)}
        for at, rows in enumerate(found)
    ]
    return {"object": "list", "model": body.model, "data": data}


def _shown(vector: np.ndarray, form: str) -> str | list[float]:
    if form == "base64":
        return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
    return [float(value) for value in vector]
