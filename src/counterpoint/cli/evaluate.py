"""`counterpoint evaluate`: measure an index or saved runs against judgements."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from counterpoint.cli import options as shared
from counterpoint.cli.batch import note_blank
from counterpoint.cli.console import Json, emit, note, warned
from counterpoint.cli.judgements import Judged, doubts, judgements_of, measure_runs
from counterpoint.cli.outputs import check_outputs
from counterpoint.cli.progress import progress
from counterpoint.cli.slicing import KINDS, SlicingData, slice_rows, slice_text, slice_values, slicing_of
from counterpoint.cli.tables import csv_table, text_table
from counterpoint.errors import ConfigError, DataError
from counterpoint.escapes import escaped
from counterpoint.library.options import BACKEND, DEEP, MEASURES, Backend, SearchOptions

if TYPE_CHECKING:
    from counterpoint.measure import Report, Slicing
    from counterpoint.measure.folds import ChooseOn
    from counterpoint.search import Run

__all__ = ["evaluate"]

CROSSED = "cross-validated"  # name of the row with the runs that the folds chose


def evaluate(
    collection: Annotated[str, typer.Argument(help="Collection with judgements, or with --run a qrels file")],
    index: Annotated[Path | None, typer.Option(help="Search and measure this index")] = None,
    run: Annotated[list[Path] | None, typer.Option(help="Measure this TREC run (repeatable)")] = None,
    split: shared.Split = None,
    measures: shared.Measures = MEASURES,
    condensed: Annotated[
        bool, typer.Option("--condensed", help="Remove unjudged documents before measuring")
    ] = False,
    relevant_from: Annotated[
        int | None, typer.Option(min=1, help="Set the lowest relevant grade for binary measures")
    ] = None,
    workflow: shared.MaybeWorkflow = None,
    weights: shared.Weights = None,
    adapt: shared.Adapt = None,
    fusion: shared.FusionName = None,
    feedback: shared.Feedback = None,
    exhaustive: shared.Exhaustive = False,
    probes: shared.Probes = None,
    where: shared.Where = None,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Retrieve this many documents (default: as measures need)")
    ] = None,
    rerank: Annotated[Path | None, typer.Option(help="Rescore only the documents of this TREC run")] = None,
    folds: Annotated[
        Path | None, typer.Option(help="Choose between runs by cross-validation on these folds")
    ] = None,
    choose_on: Annotated[
        Literal["train+validation", "validation"], typer.Option(help="With --folds: choose by these queries")
    ] = "train+validation",
    slices: Annotated[
        list[str] | None,
        typer.Option("--slice", help=f"Average over slices of the queries (repeatable): {KINDS}"),
    ] = None,
    slice_table: Annotated[Path | None, typer.Option(help="Write the slices as CSV")] = None,
    save_run: Annotated[
        Path | None, typer.Option(help=f"Save the run, {DEEP:,} documents per query unless -k")
    ] = None,
    per_query: Annotated[Path | None, typer.Option(help="Write per-query values as CSV")] = None,
    model: shared.ModelName = None,
    backend: shared.BackendName = BACKEND,
    json: Json = False,
) -> None:
    """Evaluate an index, or saved runs, on COLLECTION.

    --workflow is hybrid, lexical, dense, words, dense-words or words-dense. `counterpoint search --help`
    explains the other options of a search.
    """
    from counterpoint.measure import depth_of, with_judging
    from counterpoint.search import Run

    if not measures.split():
        raise ConfigError("--measures names no measure")
    if (index is None) == (not run):
        raise ConfigError("say what to evaluate: either --index FOLDER or --run FILE")
    searching = {
        "--rerank": rerank, "--save-run": save_run, "-k": k, "--workflow": workflow, "--weights": weights,
        "--fusion": fusion, "--feedback": feedback, "--exhaustive": exhaustive, "--probes": probes,
        "--where": where, "--model": model, "--adapt": adapt is not None, "--backend": backend != BACKEND,
    }  # fmt: skip
    if run and (idle := [option for option, value in searching.items() if value]):
        raise ConfigError(f"{' and '.join(idle)}: for a search, so use --index, not --run")
    if folds is not None and len(run or []) < 2:
        raise ConfigError("--folds chooses between runs; name two or more with --run")
    if slice_table is not None and not slices:
        raise ConfigError("--slice-table writes the slices of --slice; add --slice KIND")
    outputs = {"--save-run": save_run, "--per-query": per_query, "--slice-table": slice_table}
    check_outputs(outputs, [*(run or []), rerank])
    # Report wrong names and slices before the slow part. Two names may become one.
    names = list(
        dict.fromkeys(with_judging(measures.split(), condensed=condensed, relevant_from=relevant_from))
    )
    depth = k or (DEEP if save_run else depth_of(names, DEEP))
    judged = judgements_of(collection, split, bare=index is None)
    note(*doubts(judged.qrels, names))
    facts = SlicingData(judged, relevant_from or 1, condensed)
    slicings = [slicing_of(kind, facts) for kind in dict.fromkeys(slices or [])]
    extra: dict[str, Any] = {}
    late = None
    if index is not None:
        note(*_too_shallow(depth, names))
        flow, condition = workflow or "hybrid", shared.condition_of(where)
        options = SearchOptions(
            depth, flow, weights, adapt, fusion, feedback, exhaustive, probes, where=condition
        )
        found, extra = _search(judged, options, rerank, index, model, backend)
        runs = {str(index): found}
        late = None if save_run is None else _saved(found, save_run)
    else:
        runs = {str(path): Run.read(path) for path in run or []}
    reports = measure_runs(runs, judged.qrels, names)
    results = [{"run": name, **extra, **_summary(report)} for name, report in reports.items()]
    if folds is not None:
        reports[CROSSED], choice = _cross_validated(reports, folds, choose_on)
        results.append({"run": CROSSED, **choice, **_summary(reports[CROSSED])})
    if per_query is not None:
        _write_queries(per_query, reports, judged, slicings, relevant_from or 1)
    parts = slice_values(slicings, reports)
    if slice_table is not None:
        csv_table(slice_table, ["slice", "part", "queries", "run", *names], slice_rows(parts))
    head = {"collection": collection, "split": judged.split}
    body = results[0] if len(results) == 1 else {"runs": results}
    emit({**head, **body, **({"slices": parts} if parts else {})}, lambda: _text(results, parts), json)
    if late is not None:
        raise late


def _search(
    judged: Judged,
    options: SearchOptions,
    rerank: Path | None,
    index: Path,
    model: str | None,
    backend: Backend,
) -> tuple[Run, dict[str, Any]]:
    from counterpoint.library import OpenIndex
    from counterpoint.search import Run, Workflow

    queries = judged.whole("--index").queries(judged.split)
    blank = note_blank(queries)
    candidates = None if rerank is None else Run.read(rerank)
    with OpenIndex(index, model, backend) as opened:
        with warned():
            searcher = opened.searcher(options)
        started = time.perf_counter()
        with progress("searching", "queries", len(queries)) as update:
            workflow = cast(Workflow, options.workflow)
            found = searcher.run(
                queries, options.k, workflow=workflow, candidates=candidates, on_progress=update
            )
        milliseconds = 1000 * (time.perf_counter() - started) / len(queries)
    return found, {
        "workflow": options.workflow,
        "k": options.k,
        "without_text": len(blank),
        "milliseconds_per_query": round(milliseconds, 2),
    }


def _saved(run: Run, path: Path) -> DataError | None:
    """Write the run. Return the error of an id that TREC files cannot hold, to raise after the figures."""
    try:
        run.write(path)
    except DataError as error:
        return error
    return None


def _too_shallow(depth: int, measures: Sequence[str]) -> Iterator[str]:
    from counterpoint.measure import parse_measure

    cutoffs = {name: int(dict(parse_measure(name).params).get("cutoff") or 0) for name in measures}
    if cut := [name for name, cutoff in cutoffs.items() if cutoff > depth]:
        fewer = f"-k {depth} retrieves fewer documents than {', '.join(cut)} counts"
        yield f"{fewer}; the rest count as not found"


def _cross_validated(
    reports: Mapping[str, Report], path: Path, choose_on: ChooseOn
) -> tuple[Report, dict[str, Any]]:
    """The report of the runs that the folds choose by the first measure, and their choices."""
    from counterpoint.measure import Report, cross_validate, read_folds

    measures = list(next(iter(reports.values())).measures)
    folds = read_folds(path)
    values = {name: report.per_query[measures[0]] for name, report in reports.items()}
    chosen = cross_validate(values, folds, choose_on=choose_on).chosen
    run_of = {query: name for fold, name in zip(folds, chosen, strict=True) for query in fold.test}
    queries = next(iter(values.values()))
    crossed = Report.of(
        {
            name: {query: reports[run_of[query]].per_query[name][query] for query in queries}
            for name in measures
        },
        missing=(query for query in queries if query in reports[run_of[query]].missing),
    )
    return crossed, {"chosen": list(chosen), "chosen_by": measures[0], "chosen_on": choose_on}


def _summary(report: Report) -> dict[str, Any]:
    return {
        "measures": dict(report.measures),
        "queries": len(next(iter(report.per_query.values()))),
        "without_results": len(report.missing),
        "not_judged": len(report.ignored),
    }


def _write_queries(
    path: Path, reports: Mapping[str, Report], judged: Judged, slicings: Sequence[Slicing], relevant_from: int
) -> None:
    """Write one row per query: its text, judgements and slices, then a column per measure and run."""
    texts = {} if judged.collection is None else judged.collection.queries()
    measures = list(next(iter(reports.values())).measures)
    columns = [(run, measure) for measure in measures for run in reports]
    titles = measures if len(reports) == 1 else [f"{measure} {run}" for run, measure in columns]

    labels = [slicing.labels() for slicing in slicings]

    def rows() -> Iterator[list[str | int | float]]:
        for query, grades in judged.qrels.items():
            yield [
                query,
                *([texts.get(query, "")] if texts else []),
                sum(grade >= relevant_from for grade in grades.values()),
                *("; ".join(label_of[query]) for label_of in labels),
                *(reports[run].per_query[measure][query] for run, measure in columns),
            ]

    text = ["text"] if texts else []
    csv_table(path, ["query", *text, "relevant", *(slicing.name for slicing in slicings), *titles], rows())


def _text(results: Sequence[Mapping[str, Any]], parts: Sequence[Mapping[str, Any]]) -> str:
    from counterpoint.data.policy import counted

    measures = list(results[0]["measures"])
    lines = [text_table(["run", *measures], [[row["run"], *row["measures"].values()] for row in results])]
    for row in results:
        if "chosen" in row:
            times = [
                f"{escaped(name)} in {counted(count, 'fold')}"
                for name, count in Counter(row["chosen"]).most_common()
            ]
            lines.append(f"chosen by {row['chosen_by']} on {row['chosen_on']}: {', '.join(times)}")
    return "\n".join([*lines, *([slice_text(parts, measures)] if parts else [])])
