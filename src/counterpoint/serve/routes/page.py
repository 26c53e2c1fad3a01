"""The search page, the API page and their files, which need no key; what they ask for does."""

from __future__ import annotations

from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, Response

from counterpoint.errors import MissingExtraError
from counterpoint.serve.problems import Problem

__all__ = ["OURS", "router"]

router = APIRouter(include_in_schema=False)
FOLDER = Path(__file__).parents[2] / "resources" / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
OURS = (
    *("index.html", "style.css", "icon.svg"),
    *("page.js", "address.js", "dom.js", "health.js", "plots.js", "results.js"),
    *("docs.html", "docs.js"),
)
"""Nothing else of the folder is served."""
SWAGGER = ("swagger-ui.css", "swagger-ui-bundle.js")
"""Swagger UI, from a package that carries its files."""


@router.get("/")
async def page() -> Response:
    """The search page."""
    return await file("index.html")


@router.get("/docs")
async def docs() -> Response:
    """The page of the API."""
    return await file("docs.html")


@router.get("/page/{name}")
async def file(name: str) -> Response:
    """A file of these pages."""
    if name not in (*OURS, *SWAGGER):
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no page {name!r}")
    path = (FOLDER if name in OURS else _swagger()) / name
    return Response(path.read_bytes(), media_type=f"{TYPES[path.suffix]}; charset=utf-8")


def _swagger() -> Path:
    """The folder of Swagger UI's files; the package is not imported."""
    found = find_spec("fastapi_offline")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("the page of the API", package="fastapi-offline", extra="serve")
    return Path(found.submodule_search_locations[0]) / "static"
