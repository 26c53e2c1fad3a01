"""How the process of a server runs: uvicorn's settings and the log."""

from __future__ import annotations

import json
import logging
import sys
import time
from functools import partial
from typing import Any, final

from counterpoint.serve.connection import Connection
from counterpoint.serve.settings import ServeSettings

__all__ = ["LOGGER", "log_to_stderr", "options_of"]

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
        "timeout_graceful_shutdown": max(1, round(settings.seconds)),
    }


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
