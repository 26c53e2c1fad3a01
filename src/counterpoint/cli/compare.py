"""`counterpoint compare`: are the differences between runs real, on one collection or over several?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.judgements import Judged, judgements_of, measure_runs
from counterpoint.cli.tables import csv_table

if TYPE_CHECKING:
    from counterpoint.measure import CompareSettings, Comparison, Report

__all__ = ["compare"]

T = TypeVar("T")
SUFFIXES = (".gz", ".trec", ".txt", ".tsv", ".run", ".res", ".qrels")


@dataclass
class Group:
    """A collection and the runs on it, by the system's name."""

    name: str
    judged: Judged
    runs: dict[str, list[Path]] = field(default_factory=dict)


def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="COLLECTION RUN RUN… [COLLECTION RUN RUN…]…",
            help="Each collection (or qrels file), then the TREC runs on it. NAME=… names a collection or a "
            "system; a system that is named twice has several runs (seeds), which are averaged.",
            show_default=False,
        ),
    ],
    measures: Annotated[str, typer.Option(help="Measures by their usual names.")] = "nDCG@10",
    baseline: Annotated[
        str | None, typer.Option(help="Compare all others with this system; all pairs unless given.")
    ] = None,
    test: Annotated[Literal["t", "randomisation"], typer.Option(help="Paired test.")] = "t",
    alternative: Annotated[
        Literal["two-sided", "greater", "less"], typer.Option(help="What is to be shown of the treatment.")
    ] = "two-sided",
    correction: Annotated[
        Literal["none", "bonferroni", "holm"], typer.Option(help="For several pairs.")
    ] = "holm",
    alpha: Annotated[float, typer.Option(help="Level of significance.")] = 0.05,
    confidence: Annotated[float, typer.Option(help="Of all intervals.")] = 0.95,
    effect: Annotated[
        Literal["paired", "unpaired"], typer.Option(help="Standardised mean difference.")
    ] = "paired",
    resamples: Annotated[int, typer.Option(help="Of the bootstrap and the randomisation test.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 0,
    split: Annotated[
        list[str] | None, typer.Option(help="Which judgements: once for all, or once a collection.")
    ] = None,
    condensed: Annotated[bool, typer.Option(help="Take unjudged documents out of the runs first.")] = False,
    relevant_from: Annotated[
        list[int] | None,
        typer.Option(help="Lowest grade that is relevant: once for all, or once a collection."),
    ] = None,
    format: Annotated[
        Literal["text", "markdown", "latex"], typer.Option(help="How tables are printed.")
    ] = "text",
    forest: Annotated[
        Path | None,
        typer.Option(help="Draw the meta-analysis: a .svg, .png or .pdf file.", show_default=False),
    ] = None,
    per_query: Annotated[
        Path | None, typer.Option(help="Write a CSV with values and differences a query.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Compare runs: significance, intervals, effect sizes; over several collections a meta-analysis.

    Example: counterpoint compare dl19=qrels19.txt bm25=a19.trec tasb=b19.trec dl20=qrels20.txt
    bm25=a20.trec tasb=b20.trec --forest forest.svg
    """
    from counterpoint.errors import ConfigError
    from counterpoint.measure import (
        CompareSettings,
        comparison_data,
        comparison_tables,
        synthesise,
        with_judging,
    )
    from counterpoint.plots import check_format

    if not measures.split():
        raise ConfigError("--measures names no measure")
    if forest is not None:
        check_format(forest)
    settings = CompareSettings(
        baseline, test, alternative, correction, alpha, confidence, effect, resamples, seed
    )
    groups = _groups(what, split)
    thresholds = _each(relevant_from, len(groups), "--relevant-from")
    comparisons: list[Comparison] = []
    for group, threshold in zip(groups, thresholds, strict=True):
        names = with_judging(measures.split(), condensed=condensed, relevant_from=threshold)
        comparisons += _compared(group, dict(zip(measures.split(), names, strict=True)), settings)
    syntheses = synthesise(comparisons)
    if forest is not None:
        from counterpoint.plots import forest_plot

        forest_plot(syntheses).save(forest)
    if per_query is not None:
        _write_differences(per_query, comparisons)
    emit(
        comparison_data(comparisons, syntheses),
        lambda: _shown(comparison_tables(comparisons, syntheses), format),
        json,
    )


def _groups(what: Sequence[str], splits: list[str] | None) -> list[Group]:
    """The command line's words: a run belongs to the last collection before it."""
    from counterpoint.errors import ConfigError

    sources = [(at, *_named(word)) for at, word in enumerate(what) if not _is_run(_named(word)[1])]
    if not sources or sources[0][0] != 0:
        raise ConfigError(f"name a collection or a qrels file before its runs; {what[0]!r} is a run")
    ends = [at for at, _, _ in sources[1:]] + [len(what)]
    groups = []
    for (at, name, source), end, split in zip(
        sources, ends, _each(splits, len(sources), "--split"), strict=True
    ):
        group = Group(name or _short(source), judgements_of(source, split))
        if any(group.name == other.name for other in groups):
            raise ConfigError(f"two collections are called {group.name!r}; name them: NAME={source}")
        for label, path in map(_named, what[at + 1 : end]):
            system = label or Path(path).name.split(".")[0]
            if label is None and system in group.runs:
                raise ConfigError(f"two runs on {group.name} are called {system!r}; name them: NAME={path}")
            if Path(path) in group.runs.setdefault(system, []):
                raise ConfigError(f"{system} on {group.name} has the run {path} twice; name each run once")
            group.runs[system].append(Path(path))
        groups.append(group)
    return groups


def _named(word: str) -> tuple[str | None, str]:
    """`NAME=…` in its two parts, unless it is the path of something that exists."""
    name, equals, rest = word.partition("=")
    if not equals or not name or "/" in name or Path(word).exists():
        return None, word
    return name, rest


def _is_run(path: str) -> bool:
    """Whether a file's first line has the six columns of a run."""
    from counterpoint.data import is_trec_run

    return Path(path).is_file() and is_trec_run(path)


def _short(source: str) -> str:
    """A file's name without its usual endings, a folder's name, or the source as it is (`ir_datasets:…`)."""
    path = Path(source)
    if not path.exists():
        return source
    name = path.resolve().name
    while path.is_file() and name.endswith(SUFFIXES):
        name = name.rpartition(".")[0]
    return name


def _each(values: list[T] | None, collections: int, option: str) -> Sequence[T | None]:
    """One value a collection: none, the same for all, or one each."""
    from counterpoint.errors import ConfigError

    if not values:
        return [None] * collections
    if len(values) not in (1, collections):
        raise ConfigError(
            f"{option} stands {len(values)} times for {collections} collections; "
            "give it once for all, or once for each"
        )
    return values * collections if len(values) == 1 else values


def _compared(group: Group, measures: dict[str, str], settings: CompareSettings) -> Iterator[Comparison]:
    """One comparison a measure; `measures` maps the name that was asked for to that of what is measured."""
    from counterpoint.measure import compare as compare_systems
    from counterpoint.search import Run

    reports: dict[str, list[Report]] = {}
    for system, paths in group.runs.items():
        runs = {str(path): Run.read(path) for path in paths}
        reports[system] = list(measure_runs(runs, group.judged.qrels, list(measures.values())).values())
    for asked, measured in measures.items():
        values = {system: [report.per_query[measured] for report in made] for system, made in reports.items()}
        yield replace(compare_systems(group.name, asked, values, settings), measured_as=measured)


def _shown(tables: Sequence, form: str) -> str:
    from counterpoint.measure import as_latex, as_markdown, as_text

    write = {"text": as_text, "markdown": as_markdown, "latex": as_latex}[form]
    return "\n\n".join(map(write, tables))


def _write_differences(path: Path, comparisons: Sequence[Comparison]) -> None:
    """A row a collection, measure and query: each system's value, then each pair's difference."""
    systems = list(dict.fromkeys(name for comparison in comparisons for name in comparison.systems))
    pairs = list(dict.fromkeys((p.treatment, p.control) for c in comparisons for p in c.pairs))
    rows = []
    for comparison in comparisons:
        values = comparison.per_query
        for query in comparison.queries:
            row: list[str | float] = [comparison.collection, comparison.measure, query]
            row += [values[name][query] if name in values else "" for name in systems]
            row += [
                values[first][query] - values[second][query] if first in values and second in values else ""
                for first, second in pairs
            ]
            rows.append(row)
    header = ["collection", "measure", "query", *systems, *(f"{a} − {b}" for a, b in pairs)]
    csv_table(path, header, rows)
