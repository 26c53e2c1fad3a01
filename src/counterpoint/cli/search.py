"""`counterpoint search`: answer one query, and say why."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, cast

import typer

from counterpoint.cli.console import Json, emit, note
from counterpoint.cli.options import (
    Exhaustive,
    Feedback,
    FusionName,
    IndexFolder,
    ModelName,
    Weights,
    WorkflowName,
    asked_of,
)
from counterpoint.library.options import SearchOptions

__all__ = ["search"]


def search(
    index: IndexFolder,
    query: Annotated[str, typer.Argument(help="What you want to know.", show_default=False)],
    k: Annotated[int, typer.Option("-k", help="How many documents.", min=1)] = SearchOptions.k,
    explain: Annotated[
        bool, typer.Option(help="Show which query words matched what, and for how much.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Also write an explained page to this file.")] = None,
    workflow: WorkflowName = SearchOptions.workflow,
    weights: Weights = None,
    fusion: FusionName = None,
    feedback: Feedback = None,
    exhaustive: Exhaustive = False,
    model: ModelName = None,
    json: Json = False,
) -> None:
    """Search INDEX for QUERY."""
    from counterpoint.explain import answer_console, html_page, render_answer
    from counterpoint.files import write_atomically
    from counterpoint.library import OpenIndex
    from counterpoint.search import Workflow

    options = asked_of(workflow, weights, fusion, feedback, exhaustive)
    with OpenIndex(index, model) as opened:
        searcher = opened.searcher(options)
        started = time.perf_counter()
        answer = searcher.search(
            query, k, workflow=cast(Workflow, workflow), explain=explain or not json or html is not None
        )
        milliseconds = 1000 * (time.perf_counter() - started)
    if html is not None:
        page = html_page(answer)
        write_atomically(html, lambda path: path.write_text(page, encoding="utf-8"))
        note(f"wrote {html}")
    if json:
        return emit({**answer.to_dict(), "milliseconds": round(milliseconds, 1)}, str, json)
    render_answer(answer, answer_console(), explained="words" if explain else "no")
