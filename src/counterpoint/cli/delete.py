"""`counterpoint delete`: take documents out of an index."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.options import IndexFolder, Where
from counterpoint.cli.sources import Compact
from counterpoint.errors import ConfigError

__all__ = ["delete"]

STDIN = "-"


def delete(
    index: IndexFolder,
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of documents; - reads them from stdin, one a line.", show_default=False),
    ] = None,
    where: Where = None,
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="An id that no document has is no error.")
    ] = False,
    compact: Compact = True,
    json: Json = False,
) -> None:
    """Delete documents of INDEX by their ids, or all for whose metadata a condition holds."""
    from counterpoint.index.accounts import counted_text
    from counterpoint.library import OpenIndex

    if bool(ids) == (where is not None):
        raise ConfigError("name documents by their IDs, or by a condition (--where); not by both")
    with OpenIndex(index) as opened:
        named = None if where is not None else _ids(ids or [])
        with opened.writing(compact=compact) as changes:
            deleted = changes.delete(named, where=where, missing_ok=missing_ok)
        info = opened.info()
        result = {
            "index": str(index), "deleted": deleted, "documents": info["documents"],
            "passages": info["passages"], "segments": info["segments"],
        }  # fmt: skip
        emit(result, lambda: f"{deleted:,} deleted; the index has {counted_text(info)} left", json)


def _ids(given: list[str]) -> list[str]:
    if given != [STDIN]:
        return given
    return [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
