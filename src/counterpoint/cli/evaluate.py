"""`counterpoint evaluate`: measure an index or saved runs against judgements."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from counterpoint.cli.console import Json, emit, note, progress
from counterpoint.cli.options import ModelName, WorkflowName, model_of

if TYPE_CHECKING:
    from counterpoint.data import Collection
    from counterpoint.measure import Report
    from counterpoint.search import Run
    from counterpoint.types import Qrels

__all__ = ["evaluate"]


def evaluate(
    collection: Annotated[
        str,
        typer.Argument(
            help="Collection with queries and judgements; with --run, a qrels file will do.",
            show_default=False,
        ),
    ],
    index: Annotated[Path | None, typer.Option(help="Search this index.", show_default=False)] = None,
    run: Annotated[
        list[Path] | None, typer.Option(help="Measure this TREC run (repeatable).", show_default=False)
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Which judgements; needed where there are several.")
    ] = None,
    measures: Annotated[str, typer.Option(help="Measures by their usual names.")] = "nDCG@10 R@100 RR@10",
    workflow: WorkflowName = "hybrid",
    k: Annotated[int, typer.Option("-k", help="Documents retrieved for each query.", min=1)] = 1000,
    rerank: Annotated[Path | None, typer.Option(help="Rescore only the documents of this TREC run.")] = None,
    save_run: Annotated[Path | None, typer.Option(help="Save the index's run in TREC format.")] = None,
    per_query: Annotated[Path | None, typer.Option(help="Write a CSV with a line a query.")] = None,
    model: ModelName = None,
    json: Json = False,
) -> None:
    """Evaluate an index, or saved runs, on COLLECTION."""
    from counterpoint.errors import ConfigError

    if not measures.split():
        raise ConfigError("--measures names no measure")
    if (index is None) == (not run):
        raise ConfigError("say what to evaluate: either --index FOLDER or --run FILE")
    if run and (rerank or save_run):
        raise ConfigError("--rerank and --save-run go with --index")
    judged, qrels, used = _judgements(collection, split, need_queries=index is not None)
    extra: dict[str, Any] = {"workflow": workflow} if index is not None else {}
    if index is not None:
        queries = cast("Collection", judged).queries(used)
        runs = {str(index): _search(index, queries, (workflow, k), rerank, model, extra)}
        if save_run is not None:
            runs[str(index)].write(save_run)
    else:
        runs = _read_runs(run or [])
    reports = _measure(runs, qrels, measures)
    if per_query is not None:
        _write_table(per_query, reports)
    results = [{"run": name, **extra, **_summary(report)} for name, report in reports.items()]
    head = {"collection": collection, "split": used}
    emit(
        {**head, **results[0]} if len(results) == 1 else {**head, "runs": results},
        lambda: _table(reports),
        json,
    )


def _judgements(
    source: str, split: str | None, need_queries: bool
) -> tuple[Collection | None, Qrels, str | None]:
    """The collection (None for a bare qrels file), its judgements and the split they are from."""
    from counterpoint.data import open_collection, read_qrels
    from counterpoint.errors import ConfigError

    if Path(source).is_file() and not need_queries:
        return None, read_qrels(source), None
    collection = open_collection(source)
    if split is None and len(collection.splits) > 1 and "test" not in collection.splits:
        raise ConfigError(f"{source} has the splits {', '.join(collection.splits)}; choose one with --split")
    if not collection.splits:
        raise ConfigError(
            f"{source} has no judgements (qrels/<split>.tsv), so there is nothing to measure against"
        )
    used = split or ("test" if "test" in collection.splits else collection.splits[0])
    return collection, collection.qrels(used), used


def _search(
    folder: Path,
    queries: Mapping[str, str],
    how: tuple[str, int],
    rerank: Path | None,
    model: str | None,
    extra: dict[str, Any],
) -> Run:
    """Run all queries against an index; adds the time a query took to `extra`."""
    from counterpoint.index import Index
    from counterpoint.search import Run, Searcher, Workflow

    workflow, k = how
    candidates = None if rerank is None else Run.read(rerank)
    with Index(folder) as opened:
        searcher = Searcher(opened, model_of(opened, model, workflow))
        started = time.perf_counter()
        with progress("searching", "queries", len(queries)) as update:
            found = searcher.run(
                queries, k, workflow=cast(Workflow, workflow), candidates=candidates, on_progress=update
            )
        extra["milliseconds_per_query"] = round(1000 * (time.perf_counter() - started) / len(queries), 2)
    return found


def _read_runs(paths: list[Path]) -> dict[str, Run]:
    from counterpoint.search import Run

    return {str(path): Run.read(path) for path in paths}


def _measure(runs: Mapping[str, Run], qrels: Qrels, measures: str) -> dict[str, Report]:
    from counterpoint.measure import evaluate as measure

    reports = {name: measure(run, qrels, measures.split()) for name, run in runs.items()}
    for name, report in reports.items():
        if report.missing:
            note(f"{name}: {len(report.missing)} judged queries have no results; they count as empty")
        if report.ignored:
            note(f"{name}: {len(report.ignored)} queries are not judged; they were ignored")
    return reports


def _summary(report: Report) -> dict[str, Any]:
    return {
        "measures": dict(report.measures),
        "queries": len(next(iter(report.per_query.values()))),
        "without_results": len(report.missing),
        "not_judged": len(report.ignored),
    }


def _write_table(path: Path, reports: Mapping[str, Report]) -> None:
    """One line a run and query, one column a measure."""
    from counterpoint.files import write_atomically

    text = io.StringIO()
    table = csv.writer(text)
    names = list(next(iter(reports.values())).measures)
    table.writerow(["run", "query", *names])
    for run, report in reports.items():
        for query in report.per_query[names[0]]:
            table.writerow([run, query, *(report.per_query[name][query] for name in names)])
    write_atomically(path, lambda target: target.write_text(text.getvalue(), encoding="utf-8"))


def _table(reports: Mapping[str, Report]) -> str:
    names = list(next(iter(reports.values())).measures)
    width = max(len(run) for run in reports)
    lines = [" " * width + "".join(f"{name:>10}" for name in names)]
    for run, report in reports.items():
        lines.append(f"{run:{width}}" + "".join(f"{report.measures[name]:>10.4f}" for name in names))
    return "\n".join(lines)
