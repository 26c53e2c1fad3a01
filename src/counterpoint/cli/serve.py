"""`counterpoint serve`: serve indexes over HTTP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli.console import note
from counterpoint.cli.named import index_name, named_places
from counterpoint.cli.options import BackendName
from counterpoint.errors import MissingExtraError

if TYPE_CHECKING:
    from counterpoint.search.fleet import Fleet
    from counterpoint.serve.settings import ServeSettings

__all__ = ["serve"]


def serve(
    indexes: Annotated[
        list[str],
        typer.Argument(metavar="INDEX...", help="Index folders, or NAME=FOLDER", show_default=False),
    ],
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (default: 127.0.0.1)", show_default=False)
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on, 0 for any (default: 8000)", show_default=False)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Read settings from this TOML file", show_default=False)
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(help="Search shards on this Ray cluster; local: start one"),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="Processes per shard on the cluster (default: 1)"),
    ] = None,
    partial: Annotated[
        bool | None, typer.Option("--partial", help="Answer without shards that are gone, and name them")
    ] = None,
    backend: BackendName | None = None,
    log_texts: Annotated[bool | None, typer.Option("--log-texts", help="Write queries to the log")] = None,
) -> None:
    """Serve indexes over HTTP: search, explain, rerank, encode, add and delete.

    Settings come from options, then from environment variables such as COUNTERPOINT_READ_KEYS, then from
    the file. Beyond this machine, the server asks for API keys: COUNTERPOINT_READ_KEYS may search,
    COUNTERPOINT_WRITE_KEYS may also change an index.
    """
    # Searches are threads already. More threads of BLAS for each spin while they wait: twice the CPU a query.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
    try:
        from counterpoint.serve.app import application
        from counterpoint.serve.running import bound, log_to_stderr, run
        from counterpoint.serve.settings import ServeSettings
    except ImportError as error:
        raise MissingExtraError("serving", package="fastapi", extra="serve") from error
    given = {"host": host, "port": port, "log_texts": log_texts}
    given |= {"ray": ray, "replicas": replicas, "partial": partial, "backend": backend}
    settings = ServeSettings.gathered(given, os.environ, config)
    note(*ServeSettings.misspelt(os.environ))
    named = {name: Path(place) for name, place in named_places(indexes, index_name, "indexes").items()}

    def ready(port: int) -> None:
        note(f"serving {', '.join(named)} at http://{settings.host}:{port} (Ctrl-C to stop)")

    with ExitStack() as stack:
        at = stack.enter_context(bound(settings))  # so that a port in use is reported before shards start
        app = application(named, settings, _fleets(named, settings, stack))
        log_to_stderr()
        run(app, settings, at, ready)


def _fleets(named: Mapping[str, Path], settings: ServeSettings, stack: ExitStack) -> dict[str, Fleet]:
    """The shards of each index on the cluster, if one is named; they end with the stack."""
    if not settings.ray:
        return {}
    from counterpoint.cluster.connecting import connected
    from counterpoint.cluster.shards import ray_fleet

    stack.enter_context(connected(settings.ray))
    note(f"starting {settings.replicas} process(es) per shard on Ray")
    how = {"replicas": settings.replicas, "partial": settings.partial, "seconds": settings.seconds}
    return {name: stack.enter_context(ray_fleet(path, settings.ray, **how)) for name, path in named.items()}
