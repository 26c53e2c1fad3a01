"""The report of a sweep as plain data: rows, means, failures, and the provenance of each number."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from counterpoint.escapes import escaped
from counterpoint.provenance import provenance
from counterpoint.sweep.cells import Cell
from counterpoint.sweep.page import page
from counterpoint.sweep.plan import Outcome, SweepPlan
from counterpoint.sweep.store import Store
from counterpoint.sweep.timing import HITS, QUERIES, SECONDS

__all__ = ["COSTS", "report_of", "write_report"]

COSTS = ("bytes_per_document", "search_ms", "search_ms_p95", "encode_ms", "encode_ms_p95", "total_ms")
"""Columns of a row other than its measures. Lower is better."""


def report_of(plan: SweepPlan, outcome: Outcome, store: Store, command: str) -> dict[str, Any]:
    """Build the report as plain data. `command` is what the user typed."""
    grid = plan.grid
    numbers: dict[str, int] = {}
    rows = []
    for cell in plan.cells:
        if cell.key in outcome.results:
            number = numbers.setdefault(str(cell.combinations), len(numbers) + 1)
            rows.append({"row": number, **_row(cell, plan, outcome.results[cell.key], store)})
    rows.sort(key=lambda row: row["row"])
    return {
        "provenance": provenance(command),
        "measures": list(grid.measures),
        "k": grid.k,
        "settings": [name for name, values in grid.settings.items() if len(values) > 1],
        "fixed": {name: values[0] for name, values in grid.settings.items() if len(values) == 1},
        "timing": {"queries_at_most": QUERIES, "seconds_at_most": SECONDS, "hits": HITS},
        "collections": [
            {**judged.to_dict(), "measures": grid.measures_for(judged.entry)}
            for judged in plan.collections.values()
        ],
        "rows": rows,
        "means": _means(rows, list(plan.collections)),
        "computed": len(outcome.computed),
        "encoded": outcome.encoded,
        "not_applicable": [entry._asdict() for entry in plan.not_applicable],
        "failures": [entry._asdict() for entry in outcome.failures],
    }


def write_report(store: Store, report: Mapping[str, Any]) -> None:
    """Write `report.html`, `report.json` and `results.csv` into the folder of a sweep."""
    store.write_json("report.json", report)
    store.write_text("results.csv", _table(report))
    store.write_text("report.html", page(report))


def _row(cell: Cell, plan: SweepPlan, result: Mapping[str, Any], store: Store) -> dict[str, Any]:
    judged = plan.collections[cell.collection]
    times = result["milliseconds"]
    encode = times["encode"] or {"median": 0.0, "p95": 0.0}
    return {
        "cell": cell.key,
        "collection": cell.collection,
        "configuration": cell.configuration(plan.grid.settings),
        "stands_for": [dict(combination) for combination in cell.combinations],
        "measures": {
            name: result["measured"]["values"][computed]
            for name, computed in plan.grid.measures_for(judged.entry).items()
        },
        "bytes_per_document": result["bytes_per_document"]["read"],
        "search_ms": times["search"]["median"],
        "search_ms_p95": times["search"]["p95"],
        "encode_ms": encode["median"],
        "encode_ms_p95": encode["p95"],
        "total_ms": times["search"]["median"] + encode["median"],
        "again": _again(cell, plan, store),
        "result": result,
    }


def _again(cell: Cell, plan: SweepPlan, store: Store) -> str:
    """The command that repeats the search on the same index and gives the same values."""
    entry = plan.collections[cell.collection].entry
    measures = " ".join(dict.fromkeys(plan.grid.measures_for(entry).values()))
    words = ["counterpoint", "evaluate", entry.source, "--split", entry.split]
    words += ["--index", str(store.index(cell.index_key)), "--workflow", cell.workflow]
    words += ["-k", str(cell.k), "--measures", measures]
    for name, value in cell.options.items():
        words += [f"--{name}", value]
    if cell.model is not None and cell.model.model is not None:
        words += ["--model", cell.model.model]
    return shlex.join(words)


def _means(rows: Sequence[Mapping[str, Any]], collections: Sequence[str]) -> list[dict[str, Any]]:
    """Means over collections, of configurations that all collections have. Empty for one collection."""
    together: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        together.setdefault(row["row"], []).append(row)
    complete = [found for found in together.values() if len(found) == len(collections) > 1]
    return [
        {
            "row": found[0]["row"],
            "configuration": found[0]["configuration"],
            "measures": {
                name: fmean(row["measures"][name] for row in found) for name in found[0]["measures"]
            },
            **{name: fmean(row[name] for row in found) for name in COSTS},
        }
        for found in complete
    ]


def _table(report: Mapping[str, Any]) -> str:
    text = io.StringIO()
    names = ["model", "workflow", *report["settings"]]
    table = csv.writer(text)
    table.writerow(["row", "collection", *names, *report["measures"], *COSTS, "cell"])
    for row in report["rows"]:
        labels = [row["collection"], *(row["configuration"][name] for name in names)]
        values = [row["measures"][name] for name in report["measures"]]
        costs = [row[name] for name in COSTS]
        table.writerow([row["row"], *map(escaped, labels), *values, *costs, row["cell"]])
    return text.getvalue()
