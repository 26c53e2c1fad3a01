"""The report of a sweep as one self-contained page that is readable without its script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from counterpoint.escapes import html_text, json_text
from counterpoint.pages import render
from counterpoint.plots.tradeoff import Point, tradeoff

__all__ = ["page"]

COLUMNS = (
    ("bytes_per_document", "bytes / document", "the parts that the workflow reads"),
    ("search_ms", "search ms", "median milliseconds per query"),
    ("search_ms_p95", "search 95 %", "95th percentile"),
    ("encode_ms", "encode ms", "median milliseconds to encode a query"),
    ("encode_ms_p95", "encode 95 %", "95th percentile"),
)
AXES = (
    ("bytes_per_document", "bytes per document"),
    ("total_ms", "milliseconds per query, encoding and searching"),
)


def page(report: Mapping[str, Any]) -> str:
    """Render the page. All text of the report is escaped."""
    means = [_section("Mean over collections", report, report["means"], "")] if report["means"] else []
    return render(
        "sweep.html",
        report=report,
        where=report["provenance"],
        names=", ".join(collection["name"] for collection in report["collections"]),
        sections=means + [_collection(report, collection) for collection in report["collections"]],
        cells=[_cell(row) for row in report["rows"]],
        plain=lambda data: json_text(data, indent=1),
    )


def _collection(report: Mapping[str, Any], collection: Mapping[str, Any]) -> dict[str, Any]:
    rows = [row for row in report["rows"] if row["collection"] == collection["name"]]
    special = [
        f"{name} is {computed}" for name, computed in collection["measures"].items() if name != computed
    ]
    about = (
        f"{collection['documents']:,} documents, {collection['queries']:,} queries of {collection['split']}"
    )
    return _section(collection["name"], report, rows, "; ".join([about, *special]))


def _section(
    title: str, report: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], about: str
) -> dict[str, Any]:
    return {
        "title": title,
        "about": about,
        "heads": _heads(report),
        "rows": _rows(report, rows),
        "figures": [_figure(report, rows, cost, label) for cost, label in AXES] if rows else [],
    }


# -- tables ----------------------------------------------------------------------------------------------


def _heads(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = ["model", "workflow", *report["settings"]]
    return [
        _head("#", number=True),
        *(_head(name) for name in names),
        *(_head(name, number=True, best="high") for name in report["measures"]),
        *(_head(name, number=True, why=why) for _, name, why in COLUMNS),
    ]


def _head(name: str, *, number: bool = False, best: str = "", why: str = "") -> dict[str, Any]:
    return {"name": name, "number": number, "best": best, "why": why}


def _rows(report: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[tuple[dict[str, Any], ...]]:
    names = ["model", "workflow", *report["settings"]]
    columns = [[_text(row["row"], number=True) for row in rows]]
    columns += [[_text(row["configuration"][name]) for row in rows] for name in names]
    columns += [
        _numbers([row["measures"][name] for row in rows], max, "{:.4f}") for name in report["measures"]
    ]
    for key, _, _ in COLUMNS:
        form = "{:,.0f}" if key == "bytes_per_document" else "{:.2f}"
        columns.append(_numbers([row[key] for row in rows], min, form))
    return list(zip(*columns, strict=True))


def _text(text: object, *, number: bool = False) -> dict[str, Any]:
    return {"text": text, "number": number, "value": None, "best": False}


def _numbers(values: Sequence[float], best: Any, form: str) -> list[dict[str, Any]]:
    """Cells of one column. Every value that is displayed like the best one is bold."""
    shown = [form.format(value) for value in values]
    first = form.format(best(values)) if values else ""
    return [
        {"text": text, "number": True, "value": value, "best": text == first}
        for value, text in zip(values, shown, strict=True)
    ]


# -- plots -----------------------------------------------------------------------------------------------


def _figure(
    report: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], cost: str, label: str
) -> dict[str, Any]:
    from markupsafe import Markup

    measure = report["measures"][0]
    drawn = tradeoff(
        [_point(row, measure, cost) for row in rows],
        cost=f"{label} (logarithmic)",
        value=measure,
        among=[_point(row, measure, cost) for row in report["rows"]],
    ).svg()
    drawn = re.sub(r"<metadata>.*?</metadata>|\sxmlns(:\w+)?=\"[^\"]*\"", "", drawn, flags=re.DOTALL)
    title = f"{measure} against {label}"
    drawn = drawn.replace("<svg", f'<svg role="img" aria-label="{html_text(title)}"', 1)
    return {"drawn": Markup(drawn), "title": title}


def _point(row: Mapping[str, Any], measure: str, cost: str) -> Point:
    names = row["configuration"]
    return Point(row[cost], row["measures"][measure], str(row["row"]), names["model"], names["workflow"])


# -- details ---------------------------------------------------------------------------------------------


def _cell(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "cell": row["cell"],
        "row": row["row"],
        "name": " · ".join([row["collection"], *row["configuration"].values()]),
        "shared": len(row["stands_for"]),
        "command": row["result"]["provenance"]["command"],
        "again": row["again"],
        "data": {**row["result"], "stands_for": row["stands_for"]},
    }
