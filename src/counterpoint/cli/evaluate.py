"""`counterpoint evaluate`: measure an index or saved runs against judgements."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from counterpoint.cli.console import Json, emit, note, progress
from counterpoint.cli.options import FusionName, ModelName, Weights, WorkflowName, model_of, settings_of

if TYPE_CHECKING:
    from counterpoint.data import Collection
    from counterpoint.measure import Report
    from counterpoint.search import Run
    from counterpoint.types import Qrels

__all__ = ["evaluate"]

DEEP = 1000  # documents of a run where nothing says how many


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
    weights: Weights = None,
    fusion: FusionName = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", min=1, help="Documents retrieved for each query; what the measures need unless given."
        ),
    ] = None,
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
    depth = k or (DEEP if save_run else _depth(measures))  # a bad name is found before anything takes time
    judged, qrels, used = _judgements(collection, split, need_queries=index is not None)
    extra: dict[str, Any] = {}
    if index is not None:
        queries = cast("Collection", judged).queries(used)
        found, extra = _search(Asked(index, workflow, depth, weights, fusion, rerank, model), queries)
        runs = {str(index): found}
        if save_run is not None:
            found.write(save_run)
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


@dataclass(frozen=True)
class Asked:
    """How an index is to be searched, as it stands on the command line."""

    index: Path
    workflow: str
    depth: int
    weights: str | None
    fusion: str | None
    rerank: Path | None
    model: str | None


def _search(asked: Asked, queries: Mapping[str, str]) -> tuple[Run, dict[str, Any]]:
    """Run all queries against an index; also how, and how long a query took."""
    from counterpoint.index import Index
    from counterpoint.search import Run, Searcher, Workflow

    candidates = None if asked.rerank is None else Run.read(asked.rerank)
    with Index(asked.index) as opened:
        settings = settings_of(opened, asked.weights, asked.fusion)
        searcher = Searcher(opened, model_of(opened, asked.model, asked.workflow), settings)
        started = time.perf_counter()
        with progress("searching", "queries", len(queries)) as update:
            workflow = cast(Workflow, asked.workflow)
            found = searcher.run(
                queries, asked.depth, workflow=workflow, candidates=candidates, on_progress=update
            )
        milliseconds = 1000 * (time.perf_counter() - started) / len(queries)
    return found, {
        "workflow": asked.workflow,
        "k": asked.depth,
        "milliseconds_per_query": round(milliseconds, 2),
    }


def _depth(measures: str) -> int:
    """How many documents the measures look at: their largest cutoff, or many where one has none."""
    from counterpoint.measure import parse_measure

    cutoffs = [dict(parse_measure(name).params).get("cutoff") for name in measures.split()]
    return max((int(cutoff) if cutoff else DEEP for cutoff in cutoffs), default=DEEP)


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
