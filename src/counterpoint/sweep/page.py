"""The report of a sweep as one self-contained page: nothing outside the file, readable without its script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from counterpoint.escapes import html_text as escape
from counterpoint.escapes import json_text
from counterpoint.plots.tradeoff import Point, tradeoff

__all__ = ["page"]

STYLE = MappingProxyType(
    {
        ":root": "color-scheme: light dark",
        "body": "font: 16px/1.55 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem",
        "h1": "font-size: 1.5rem; margin: 0 0 .3rem",
        "h2": "font-size: 1.2rem; margin: 2.2rem 0 .3rem; border-top: 1px solid #8885; padding-top: 1rem",
        "h3": "font-size: 1rem; margin: 1.2rem 0 .3rem",
        ".quiet": "opacity: .75; font-size: .88rem",
        ".wide": "overflow-x: auto",
        "table": "border-collapse: collapse; font-size: .9rem; margin: .6rem 0; white-space: nowrap",
        "th, td": "text-align: left; padding: .15rem 1.1rem .15rem 0; font-variant-numeric: tabular-nums",
        "thead th": "font-weight: normal; border-bottom: 1px solid #8888; vertical-align: bottom",
        "tbody tr:hover": "background: #8882",
        "th button": "all: unset; cursor: pointer",
        "th button:focus-visible": "outline: 2px solid",
        ".n": "text-align: right",
        ".plots": "display: flex; flex-wrap: wrap; gap: 1rem",
        "figure": "margin: .6rem 0; flex: 1 1 30rem; min-width: 0",
        "figure svg": "width: 100%; height: auto; background: white; border-radius: .4rem; padding: .4rem; "
        "box-sizing: border-box",
        "figcaption": "opacity: .75; font-size: .88rem",
        "summary": "cursor: pointer; padding: .1rem 0",
        "code, pre": "font: .82rem/1.45 ui-monospace, monospace",
        "pre": "white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .5rem .7rem; "
        "border-radius: .3rem; margin: .4rem 0",
    }
)

SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    let falling = head.dataset.best === "high";
    button.onclick = () => {
      const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const compare = (a, b) => {
        const [x, y] = [value(a), value(b)];
        return isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      };
      const rows = [...table.tBodies[0].rows].sort(compare);
      table.tBodies[0].append(...(falling ? rows.reverse() : rows));
      falling = !falling;
    };
  });
}
"""

COLUMNS = (
    ("bytes_per_document", "bytes / document", "the parts that the workflow reads"),
    ("search_ms", "search ms", "median milliseconds a query"),
    ("search_ms_p95", "search 95 %", "95th percentile"),
    ("encode_ms", "encode ms", "median milliseconds to encode a query"),
    ("encode_ms_p95", "encode 95 %", "95th percentile"),
)
AXES = (
    ("bytes_per_document", "bytes a document"),
    ("total_ms", "milliseconds a query, encoding and searching"),
)


def page(report: Mapping[str, Any]) -> str:
    """The page. All text of the report is escaped."""
    style = "\n".join(f"{selector} {{ {rules} }}" for selector, rules in STYLE.items())
    names = [collection["name"] for collection in report["collections"]]
    body = "\n".join(
        [
            _head(report),
            *([_section("Mean over collections", report, report["means"], "")] if report["means"] else []),
            *(_collection(report, collection) for collection in report["collections"]),
            _left_out(report),
            _provenance(report),
        ]
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sweep: {escape(", ".join(names))}</title><style>{style}</style></head><body>
{body}
<script>{SCRIPT}</script></body></html>
"""


def _head(report: Mapping[str, Any]) -> str:
    where, timing = report["provenance"], report["timing"]
    machine = f"{where['machine']['processor']}, {where['machine']['cores']} cores"
    fixed = "".join(f" · {escape(name)} {escape(str(value))}" for name, value in report["fixed"].items())
    return f"""<h1>Sweep</h1>
<p class="quiet">{escape(where["date"])} · counterpoint {escape(where["versions"]["counterpoint"])} ·
{len(report["rows"])} cells, {report["computed"]} of them computed by this command ·
{report["k"]} documents kept for each query{fixed} · {escape(machine)}</p>
<pre>{escape(where["command"])}</pre>
<p class="quiet">A row number means the same configuration in every table and drawing. The best value of
a column is bold. “–”: the setting makes no difference there. Bytes are those of the vectors and postings that
a workflow reads; stored texts and ids, the same for all, are not counted. Times are those of a user who sends
one query after the other to a warm index and gets {timing["hits"]} documents with their texts; encoding the
query is measured apart, on the bare model. At most {timing["queries_at_most"]} queries are timed, drawn with
a fixed seed, for {timing["seconds_at_most"]:g} seconds at most; the libraries may use all cores. Cells of
earlier commands keep the times measured then: see the machine behind each number before comparing.</p>"""


def _collection(report: Mapping[str, Any], collection: Mapping[str, Any]) -> str:
    rows = [row for row in report["rows"] if row["collection"] == collection["name"]]
    special = [
        f"{name} is {computed}" for name, computed in collection["measures"].items() if name != computed
    ]
    about = (
        f"{collection['documents']:,} documents, {collection['queries']:,} queries of {collection['split']}"
    )
    return _section(collection["name"], report, rows, "; ".join([about, *special]))


def _section(title: str, report: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], about: str) -> str:
    if not rows:
        return (
            f'<h2>{escape(title)}</h2><p class="quiet">{escape(about)}</p><p>No cell could be evaluated.</p>'
        )
    plots = "".join(_figure(report, rows, cost, label) for cost, label in AXES)
    return f"""<h2>{escape(title)}</h2><p class="quiet">{escape(about)}</p>
<div class="wide">{_table(report, rows)}</div><div class="plots">{plots}</div>"""


# -- tables ----------------------------------------------------------------------------------------------


def _table(report: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    names = ["model", "workflow", *report["settings"]]
    heads = ['<th class="n">#</th>', *(f"<th>{escape(name)}</th>" for name in names)]
    heads += [f'<th class="n" data-best="high">{escape(name)}</th>' for name in report["measures"]]
    heads += [f'<th class="n" title="{escape(why)}">{escape(name)}</th>' for _, name, why in COLUMNS]
    columns = [[f'<td class="n">{row["row"]}</td>' for row in rows]]
    columns += [[f"<td>{escape(row['configuration'][name])}</td>" for row in rows] for name in names]
    columns += [
        _numbers([row["measures"][name] for row in rows], max, "{:.4f}") for name in report["measures"]
    ]
    for key, _, _ in COLUMNS:
        form = "{:,.0f}" if key == "bytes_per_document" else "{:.2f}"
        columns.append(_numbers([row[key] for row in rows], min, form))
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns, strict=True))
    return f'<table class="sortable"><thead><tr>{"".join(heads)}</tr></thead><tbody>{body}</tbody></table>'


def _numbers(values: Sequence[float], best: Any, form: str) -> list[str]:
    """Cells of one column; what looks like the best value is bold."""
    shown = [form.format(value) for value in values]
    first = form.format(best(values))
    return [
        f'<td class="n" data-value="{value}">{f"<strong>{text}</strong>" if text == first else text}</td>'
        for value, text in zip(values, shown, strict=True)
    ]


# -- drawings --------------------------------------------------------------------------------------------


def _figure(report: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], cost: str, label: str) -> str:
    measure = report["measures"][0]
    drawn = tradeoff(
        [_point(row, measure, cost) for row in rows],
        cost=f"{label} (logarithmic)",
        value=measure,
        among=[_point(row, measure, cost) for row in report["rows"]],
    ).svg()
    drawn = re.sub(r"<metadata>.*?</metadata>|\sxmlns(:\w+)?=\"[^\"]*\"", "", drawn, flags=re.DOTALL)
    title = escape(f"{measure} against {label}")
    drawn = drawn.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)
    return f"<figure>{drawn}<figcaption>{title}; numbers are rows of the table.</figcaption></figure>"


def _point(row: Mapping[str, Any], measure: str, cost: str) -> Point:
    names = row["configuration"]
    return Point(row[cost], row["measures"][measure], str(row["row"]), names["model"], names["workflow"])


# -- what stands behind ------------------------------------------------------------------------------------


def _left_out(report: Mapping[str, Any]) -> str:
    failures = "".join(
        f"<li><strong>{escape(x['where'])}</strong>: {escape(x['message'])}</li>" for x in report["failures"]
    )
    impossible = "".join(
        f"<li>{escape(x['model'])} · {escape(x['workflow'])}: {escape(x['reason'])}</li>"
        for x in report["not_applicable"]
    )
    return f"""<h2>Failures</h2>{f"<ul>{failures}</ul>" if failures else "<p>None.</p>"}
<h2>Not applicable</h2>{f"<ul>{impossible}</ul>" if impossible else "<p>None.</p>"}"""


def _provenance(report: Mapping[str, Any]) -> str:
    """A fold for each cell, and one for the collections."""
    folds = [_fold("collections", "the files and what was read from them", report["collections"])]
    for row in report["rows"]:
        name = " · ".join([row["collection"], *row["configuration"].values()])
        shared = len(row["stands_for"])
        folds.append(
            f'<details id="cell-{escape(row["cell"])}"><summary>{row["row"]}. {escape(name)} '
            f'<span class="quiet">cell {escape(row["cell"])}, {shared} combination{"s"[: shared > 1]} of the '
            f'grid</span></summary><p class="quiet">computed by</p>'
            f"<pre>{escape(row['result']['provenance']['command'])}</pre>"
            f'<p class="quiet">measured again, on the same index, by</p><pre>{escape(row["again"])}</pre>'
            f"<pre>{_plain({**row['result'], 'stands_for': row['stands_for']})}</pre></details>"
        )
    return f"<h2>Behind every number</h2>{''.join(folds)}"


def _fold(title: str, about: str, data: object) -> str:
    return (
        f'<details><summary>{escape(title)} <span class="quiet">{escape(about)}</span></summary>'
        f"<pre>{_plain(data)}</pre></details>"
    )


def _plain(data: object) -> str:
    return escape(json_text(data, indent=1))
