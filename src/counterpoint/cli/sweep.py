"""`counterpoint sweep`: evaluate a grid, keep finished cells, and report on them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli.console import Json, emit, note, typed
from counterpoint.cli.progress import progress
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.sweep import SweepPlan

__all__ = ["sweep"]


def sweep(
    grid: Annotated[Path, typer.Argument(help="TOML file that says what to evaluate")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the sweep to this folder")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the cells, and which are done")
    ] = False,
    forget_encodings: Annotated[
        bool, typer.Option("--forget-encodings", help="Delete the float32 vectors when all is done")
    ] = False,
    json: Json = False,
) -> None:
    """Evaluate a GRID of models, collections, workflows and settings; the same command resumes it.

    Finished cells are not computed again. Exit code 2 if a model, a collection or a cell failed; the others
    are still evaluated and reported.
    """
    from counterpoint.sweep import Watch, plan_sweep, read_grid, run_sweep

    asked = read_grid(grid)
    if forget_encodings:
        asked = replace(asked, keep_encodings=False)
    from counterpoint.loading import load_model  # brings torch with it

    load = lru_cache(maxsize=1)(load_model)  # keeps one model in memory, so that a single one is loaded once
    note("reading collections and models")
    plan = plan_sweep(asked, load)
    if dry_run:
        described = _described(plan, output)
        emit(described, lambda: _outline(described), json)
    else:
        with ExitStack() as bars:
            cells = bars.enter_context(progress("evaluating", "cells", len(plan.cells)))
            encoded = bars.enter_context(progress("encoding", "texts"))
            watch = Watch(cells, encoded)
            described = run_sweep(plan, output, load, command=typed(), watch=watch)
        emit(described, lambda: _summary(described, output), json)
    for failure in described["failures"]:
        note(f"error: {failure['where']}: {failure['message']}")
    if described["failures"]:
        raise typer.Exit(2)


def _described(plan: SweepPlan, folder: Path) -> dict[str, Any]:
    from counterpoint.sweep.store import Store

    store = Store(folder)
    return {
        "cells": [
            {"cell": cell.key, "label": cell.label(plan.grid.settings), "done": store.has(cell.key)}
            for cell in plan.cells
        ],
        "not_applicable": [entry._asdict() for entry in plan.not_applicable],
        "failures": [entry._asdict() for entry in plan.failures],
    }


def _outline(described: Mapping[str, Any]) -> str:
    lines = [
        f"{'done ' if cell['done'] else 'to do'}  {escaped(cell['label'])}" for cell in described["cells"]
    ]
    lines += [
        escaped(f"not applicable  {entry['model']} {entry['workflow']}: {entry['reason']}")
        for entry in described["not_applicable"]
    ]
    done = sum(cell["done"] for cell in described["cells"])
    return "\n".join([*lines, f"{len(described['cells'])} cells, {done} of them done"])


def _summary(report: Mapping[str, Any], folder: Path) -> str:
    first = report["measures"][0]
    lines = []
    for collection in report["collections"]:
        rows = [row for row in report["rows"] if row["collection"] == collection["name"]]
        if rows:
            best = max(rows, key=lambda row: row["measures"][first])
            name = " ".join(best["configuration"].values())
            lines.append(
                escaped(f"{collection['name']}: best {first} {best['measures'][first]:.4f} ({name})")
            )
    lines.append(
        f"{len(report['rows'])} cells, {report['computed']} computed now, {report['encoded']:,} texts "
        f"encoded, {len(report['failures'])} failures"
    )
    return "\n".join([*lines, escaped(f"Read it in a browser: {folder / 'report.html'}")])
