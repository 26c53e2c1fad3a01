"""Batch search: from stdin to JSON Lines, or from a file of queries to a TREC run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from counterpoint.cli.asking import Asking
from counterpoint.cli.console import emit, note
from counterpoint.cli.progress import progress
from counterpoint.errors import DataError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.search import Workflow

__all__ = ["answer_lines", "note_blank", "write_run"]


def answer_lines(asking: Asking) -> None:
    """Answer each line of stdin with one line of JSON as soon as it is read; skip blank lines.

    Raises:
        DataError: a line is not UTF-8.
    """
    for query in _lines():
        emit(asking.answer(query)[1], str, True)


def write_run(asking: Asking, queries: Path, output: Path, as_json: bool) -> None:
    """Search for every query of a file and write a TREC run; no judgements are needed.

    Raises:
        DataError: the file has no queries, or an id contains white space, which a run cannot hold.
    """
    from counterpoint.data import read_queries

    texts = read_queries(queries)
    if not texts:
        raise DataError("this file has no queries; write one per line, an id, a tab and a text", path=queries)
    note_blank(texts)
    searcher, options = asking.ready(), asking.options
    with progress("searching", "queries", len(texts)) as update:
        run = searcher.run(texts, options.k, workflow=cast("Workflow", options.workflow), on_progress=update)
    run.write(output)
    found = sum(len(run[query]) for query in run)
    emit(
        {"output": str(output), "queries": len(run), "rows": found},
        lambda: escaped(f"{output}: {len(run):,} queries, {found:,} rows"),
        as_json,
    )


def note_blank(queries: Mapping[str, str]) -> list[str]:
    """Note on stderr which queries have no text; return their ids."""
    blank = [query for query, text in queries.items() if not text.strip()]
    if blank:
        note(f"{len(blank)} of {len(queries)} queries have no text, such as {blank[0]!r}; they find nothing")
    return blank


def _lines() -> Iterator[str]:
    """Lines of stdin that are not blank, read as UTF-8 whatever the locale."""
    stream = getattr(sys.stdin, "buffer", None)
    for number, line in enumerate(sys.stdin if stream is None else stream, start=1):
        try:
            text = line if isinstance(line, str) else line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"not UTF-8 ({error.reason} at byte {error.start}); convert it, as with iconv -t UTF-8",
                path="stdin",
                line=number,
            ) from error
        if text := text.strip():
            yield text
