"""How the process of a server runs: its socket, uvicorn's settings and the log."""

from __future__ import annotations

import json
import logging
import socket
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import Any, final

import uvicorn
from typing_extensions import override

from counterpoint.errors import ConfigError
from counterpoint.serve.connection import Connection
from counterpoint.serve.settings import ServeSettings

__all__ = ["LOGGER", "bound", "log_to_stderr", "options_of", "run"]

LOGGER = logging.getLogger("counterpoint.serve")
"""Messages are dictionaries, and become lines of JSON."""


def options_of(settings: ServeSettings) -> dict[str, Any]:
    """What uvicorn is told. One process: an index is written in one place."""
    return {
        "host": settings.host,
        "port": settings.port,
        "access_log": False,  # the guard writes a line per request, without queries
        "log_config": None,
        "server_header": False,
        "http": partial(Connection, settings.seconds, settings.connections),
        "ws": "none",
        "timeout_keep_alive": 5,
    }


def bound(settings: ServeSettings) -> socket.socket:
    """A socket at the address of the settings.

    Raises:
        ConfigError: another process uses the port, or the address does not belong to this machine.
    """
    host = settings.host.strip("[]")
    try:
        found = socket.getaddrinfo(host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except OSError:
            made.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}; choose another "
            "--port (0 for any free one) or --host"
        ) from error
    return made


def run(app: Any, settings: ServeSettings, at: socket.socket, ready: Callable[[int], None]) -> None:
    """Serve until a signal; call `ready` with the port once requests are answered."""

    class Server(uvicorn.Server):
        @override
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready(at.getsockname()[1])

    _allow_open_files()
    with closing(at):
        Server(uvicorn.Config(app, **options_of(settings))).run(sockets=[at])


def _allow_open_files() -> None:
    """Allow this process as many open files as the system lets it; a segment of an index has some twenty."""
    with suppress(ImportError, OSError, ValueError):  # missing on Windows; a fixed limit stays
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@final
class JsonLines(logging.Formatter):
    """One JSON object per line: time, level and the fields of the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record. Control characters are escaped, so a line is always one record."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {"time": f"{at}.{int(record.msecs):03}Z", "level": record.levelname.lower()}
        line |= record.msg if isinstance(record.msg, dict) else {"message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_to_stderr() -> None:
    """Write the log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
