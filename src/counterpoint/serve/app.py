"""The HTTP API as an application."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fastapi import FastAPI
from starlette.types import ASGIApp

from counterpoint.errors import ConfigError
from counterpoint.search.fleet import Fleet
from counterpoint.serve import problems
from counterpoint.serve.guard import Guard
from counterpoint.serve.routes import compatible, health, page, reads, writes
from counterpoint.serve.served import Served
from counterpoint.serve.server import Server
from counterpoint.serve.settings import ServeSettings
from counterpoint.version import version

__all__ = ["application"]


def application(
    indexes: Mapping[str, Path],
    settings: ServeSettings,
    fleets: Mapping[str, Fleet] = MappingProxyType({}),
) -> ASGIApp:
    """Make an application that serves indexes.

    Args:
        indexes: folders of indexes by name.
        settings: of the server.
        fleets: by name, what searches the shards of an index elsewhere.

    Raises:
        ConfigError: there is no index.
        ArtifactError: an index cannot be opened.
    """
    if not indexes:
        raise ConfigError("name an index to serve")
    served = {
        name: Served(name, folder, fleets.get(name), settings.backend) for name, folder in indexes.items()
    }
    server = Server(served, settings)
    app = FastAPI(
        title="Counterpoint",
        version=version(),
        summary="Search, explain and change neural and BM25 indexes",
        lifespan=server.lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"default": dict(problems.DESCRIBED)},
    )
    app.state.server = server
    problems.install(app)
    for routes in (page, health, reads, writes, compatible):
        app.include_router(routes.router)
    return Guard(app, settings, server.metrics)
