"""`counterpoint delete`: delete documents from an index."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.options import Compact, IndexFolder, Where, condition_of
from counterpoint.errors import ConfigError

__all__ = ["delete"]

STDIN = "-"


def delete(
    index: IndexFolder,
    ids: Annotated[
        list[str] | None, typer.Argument(help="Document ids; - reads them from stdin, one per line")
    ] = None,
    where: Where = None,
    missing_ok: Annotated[bool, typer.Option("--missing-ok", help="Ignore ids that no document has")] = False,
    compact: Compact = True,
    json: Json = False,
) -> None:
    """Delete documents of INDEX by id, or all documents whose metadata meets a condition."""
    from counterpoint.index.disk_usage import counted_text
    from counterpoint.library import OpenIndex

    condition = condition_of(where)
    if not ids and condition is None:
        raise ConfigError("name the documents to delete, by their IDs or by a condition (--where)")
    if ids and condition is not None:
        raise ConfigError("name documents by their IDs or by a condition (--where), not by both")
    with OpenIndex(index) as opened:
        named = None if condition is not None else _ids(ids or [])
        with opened.writing(compact=compact) as changes:
            deleted = changes.delete(named, where=condition, missing_ok=missing_ok)
        info = opened.index.disk_usage()
        result = {
            "index": str(index), "deleted": deleted, "documents": info["documents"],
            "passages": info["passages"], "segments": info["segments"],
        }  # fmt: skip
        emit(result, lambda: f"{deleted:,} deleted; the index now has {counted_text(info)}", json)


def _ids(given: list[str]) -> list[str]:
    if given != [STDIN]:
        return given
    return [line.rstrip("\r\n") for line in sys.stdin if line.strip()]
