"""`counterpoint serve`: serve indexes over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.console import note
from counterpoint.cli.named import named_indexes
from counterpoint.errors import MissingExtraError

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
    log_texts: Annotated[bool | None, typer.Option("--log-texts", help="Write queries to the log")] = None,
) -> None:
    """Serve indexes over HTTP: search, explain, rerank, encode, add and delete.

    Settings come from options, then from environment variables such as COUNTERPOINT_READ_KEYS, then from
    the file. Beyond this machine, the server asks for API keys: COUNTERPOINT_READ_KEYS may search,
    COUNTERPOINT_WRITE_KEYS may also change an index.
    """
    try:
        import uvicorn

        from counterpoint.serve.app import application
        from counterpoint.serve.running import log_to_stderr, options_of
        from counterpoint.serve.settings import ServeSettings
    except ImportError as error:
        raise MissingExtraError("serving", package="fastapi", extra="serve") from error
    given = {"host": host, "port": port, "log_texts": log_texts}
    settings = ServeSettings.gathered(given, os.environ, config)
    named = {name: Path(place) for name, place in named_indexes(indexes).items()}
    app = application(named, settings)
    log_to_stderr()
    note(f"serving {', '.join(named)} at http://{settings.host}:{settings.port} (Ctrl-C to stop)")
    uvicorn.Server(uvicorn.Config(app, **options_of(settings))).run()
