"""The search page and its files, which need no key; what they ask for does."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from fastapi import APIRouter, Response

from counterpoint.serve.problems import Problem

__all__ = ["TYPES", "router"]

router = APIRouter(include_in_schema=False)
FOLDER = Path(__file__).parents[2] / "resources" / "page"
TYPES = {
    "index.html": "text/html",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(
        ("page.js", "address.js", "dom.js", "health.js", "plots.js", "results.js"), "text/javascript"
    ),
}
"""The page's files and their types. Nothing else of the folder is served."""


@router.get("/")
async def page() -> Response:
    """The search page."""
    return await file("index.html")


@router.get("/page/{name}")
async def file(name: str) -> Response:
    """One of its files."""
    if name not in TYPES:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no page {name!r}")
    return Response((FOLDER / name).read_bytes(), media_type=f"{TYPES[name]}; charset=utf-8")
