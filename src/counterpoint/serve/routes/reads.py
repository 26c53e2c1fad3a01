"""Requests that change nothing: search, rerank, encode, documents, what an index has."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from counterpoint.library.options import SearchOptions
from counterpoint.serve.server import NamedIndex, Shared, too_much
from counterpoint.serve.shapes import EncodeBody, RerankBody, RunBody, SearchBody

__all__ = ["router"]

router = APIRouter()


@router.get("/v1/indexes", tags=["read"])
async def indexes(server: Shared) -> dict[str, Any]:
    """The indexes of this server."""
    found = [await server.threads.run(served.info) for served in server.indexes.values()]
    return {"indexes": found}


@router.get("/v1/indexes/{index}", tags=["read"])
async def info(served: NamedIndex, server: Shared) -> dict[str, Any]:
    """What an index has, and its disk usage."""
    return await server.threads.run(served.info)


@router.get("/v1/indexes/{index}/health", tags=["read"])
async def health(served: NamedIndex, server: Shared) -> dict[str, Any]:
    """Truncated passages, isotropy of the vectors and overlap of the parts, measured on samples."""
    return await server.measures.run(served.health)


@router.post("/v1/indexes/{index}/search", tags=["read"], response_model=dict[str, Any])
async def search(served: NamedIndex, body: SearchBody, request: Request, server: Shared) -> Any:
    """The best documents for a query, or for each of several. With `explain`, every score as a tree."""
    texts = [body.query] if isinstance(body.query, str) else body.query
    server.check(texts, body.k)
    request.state.texts = texts
    started, options = time.perf_counter(), body.options(body.k, body.explain)
    await server.encoded(served, texts, options)
    found = [await server.threads.run(lambda text=text: served.search(text, options)) for text in texts]
    answers = [{**answer.to_dict(), "commit": commit} for answer, commit in found]
    took = round(1000 * (time.perf_counter() - started), 2)
    if isinstance(body.query, str):
        return _encoded({"index": served.name, "milliseconds": took, **answers[0]})
    return _encoded({"index": served.name, "milliseconds": took, "answers": answers})


@router.post("/v1/indexes/{index}/run", tags=["read"])
async def run(served: NamedIndex, body: RunBody, request: Request, server: Shared) -> dict[str, Any]:
    """Ids and scores of the best documents for many queries. A document scores as its best passage."""
    texts = list(body.queries.values())
    k = body.depth(server.settings.max_k)
    server.check(texts, k)
    request.state.texts, options = texts, body.options(k)
    await server.encoded(served, texts, options)
    found, commit = await server.threads.run(lambda: served.run(body.queries, options))
    results = {query: found.scores(query) for query in found}
    return {"index": served.name, "commit": commit, "results": results}


@router.post("/v1/indexes/{index}/rerank", tags=["read"])
async def rerank(served: NamedIndex, body: RerankBody, request: Request, server: Shared) -> dict[str, Any]:
    """Documents of the index that you name, by their score for a query."""
    k = len(body.ids) if body.k is None else body.k
    if len(body.ids) > server.settings.max_k:
        raise too_much(f"{len(body.ids):,} ids; the most is {server.settings.max_k:,}")
    server.check([body.query], k)
    request.state.texts, options = [body.query], body.options(k)
    await server.encoded(served, [body.query], options)
    ranked, commit = await server.threads.run(lambda: served.rerank(body.query, body.ids, options))
    hits = [{"rank": rank, "id": id_, "score": score} for rank, (id_, score) in enumerate(ranked, 1)]
    return {"index": served.name, "commit": commit, "query": body.query, "hits": hits}


@router.post("/v1/indexes/{index}/encode", tags=["read"])
async def encode(served: NamedIndex, body: EncodeBody, server: Shared) -> dict[str, Any]:
    """Query vectors of texts by the model of the index: a list of vectors per text and set."""
    server.check(body.texts)
    await server.encoded(served, body.texts, SearchOptions())
    found = await server.threads.run(lambda: served.encode(body.texts, body.sets))
    return {"index": served.name, "sets": {n: [v.tolist() for v in each] for n, each in found.items()}}


@router.get("/v1/indexes/{index}/documents/{id:path}", tags=["read"], response_model=dict[str, Any])
async def document(served: NamedIndex, id: str, server: Shared) -> Any:
    """A document as it was indexed."""
    found, commit = await server.threads.run(lambda: served.document(id))
    return _encoded({"index": served.name, "commit": commit, "document": found})


def _encoded(found: dict[str, Any]) -> JSONResponse:
    """An answer with metadata, which may be nested deeper than FastAPI's own encoder goes."""
    return JSONResponse(found)
