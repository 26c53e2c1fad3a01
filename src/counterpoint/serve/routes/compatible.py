"""Requests in the shapes of other services, for clients that exist."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from fastapi import APIRouter, Request

from counterpoint.library.options import SearchOptions
from counterpoint.serve.server import Shared
from counterpoint.serve.shapes import EmbeddingsBody, RerankTextsBody

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


@router.post("/v1/rerank", tags=["compatible"])
@router.post("/v2/rerank", tags=["compatible"])
async def rerank(body: RerankTextsBody, request: Request, server: Shared) -> dict[str, Any]:
    """Texts by their score for a query, as Cohere's clients expect them. `model` names an index.

    The texts need not be in the index. They are scored by its model, weights and statistics, without
    feedback.
    """
    served = server.named(body.model)
    texts = [given if isinstance(given, str) else given.text for given in body.documents]
    server.check([body.query])
    server.check_texts(texts, server.settings.max_text)
    request.state.texts = [body.query]
    await server.encoded(served, [body.query], SearchOptions())
    scores, commit = await server.threads.run(lambda: served.score_texts(body.query, texts))
    results: list[dict[str, Any]] = [
        {"index": at, "relevance_score": scores[at]}
        for at in sorted(range(len(texts)), key=lambda at: -scores[at])[: body.top_n]
    ]
    if body.return_documents:
        results = [{**result, "document": {"text": texts[result["index"]]}} for result in results]
    meta = {"api_version": {"version": request.url.path[2]}, "commit": commit}
    return {"id": request.state.request_id, "results": results, "meta": meta}


def _shown(vector: np.ndarray, form: str) -> str | list[float]:
    if form == "base64":
        return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
    return [float(value) for value in vector]
