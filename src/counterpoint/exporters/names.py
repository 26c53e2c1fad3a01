"""The engines by name. An engine is a module of this package, imported when it is named."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from counterpoint.errors import ConfigError

if TYPE_CHECKING:
    from counterpoint.exporters.engine import Engine

__all__ = ["ENGINES", "engine_of"]

ENGINES = ("qdrant", "lancedb", "milvus", "opensearch", "weaviate", "vespa")
"""Names of the engines; each module has its engine under the name `ENGINE`."""


def engine_of(name: str) -> Engine:
    """The engine of a name; its client is not imported yet.

    Raises:
        ConfigError: no engine has this name.
    """
    if name not in ENGINES:
        raise ConfigError(f"unknown engine {name!r}; choose {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    return import_module(f"counterpoint.exporters.{name}").ENGINE
