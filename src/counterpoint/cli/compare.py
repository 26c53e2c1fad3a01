"""`counterpoint compare`: test differences between runs, on one collection or over several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from counterpoint.cli.by_slice import (
    Asked,
    Halves,
    Lengths,
    LengthsPlot,
    Sliced,
    Wins,
    WinsPlot,
    draw_slices,
    sliced,
)
from counterpoint.cli.complementarity import (
    AnsweredTable,
    Answers,
    Complementarity,
    Overlaps,
    Venn,
    checked_cutoffs,
    draw_venn,
    overlaps_of,
    write_answered,
)
from counterpoint.cli.console import Json, emit
from counterpoint.cli.groups import Group, each, groups_of
from counterpoint.cli.judgements import measure_runs
from counterpoint.cli.options import Measures
from counterpoint.cli.outputs import check_outputs
from counterpoint.cli.tables import csv_table
from counterpoint.errors import ConfigError, DataError

if TYPE_CHECKING:
    from counterpoint.measure import CompareSettings, Comparison, Report
    from counterpoint.search import Run

__all__ = ["compare"]


@dataclass(frozen=True)
class Question:
    """Settings of the comparison, the same for every collection."""

    measures: Sequence[str]
    condensed: bool
    settings: CompareSettings
    cutoffs: Sequence[int]
    slicing: Asked


@dataclass(frozen=True)
class Found:
    """Results of one collection; None for what was not asked for."""

    comparisons: list[Comparison]
    overlaps: Overlaps | None
    sliced: Sliced | None


def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="COLLECTION RUN RUN… [COLLECTION RUN RUN…]…",
            help="Each collection or qrels file, then the TREC runs on it",
        ),
    ],
    measures: Measures = "nDCG@10",
    baseline: Annotated[
        str | None, typer.Option(help="Compare the others with this system (default: all pairs)")
    ] = None,
    test: Annotated[Literal["t", "randomisation"], typer.Option(help="Choose the paired test")] = "t",
    alternative: Annotated[
        Literal["two-sided", "greater", "less"], typer.Option(help="Set the alternative hypothesis")
    ] = "two-sided",
    correction: Annotated[
        Literal["none", "bonferroni", "holm"], typer.Option(help="Correct p-values for several pairs")
    ] = "holm",
    alpha: Annotated[float, typer.Option(help="Set the significance level")] = 0.05,
    confidence: Annotated[float, typer.Option(help="Set the confidence level of all intervals")] = 0.95,
    effect: Annotated[
        Literal["paired", "unpaired"], typer.Option(help="Choose the standardised mean difference")
    ] = "paired",
    resamples: Annotated[
        int, typer.Option(help="Set the number of resamples (bootstrap, randomisation)")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="Set the resampling seed")] = 0,
    split: Annotated[
        list[str] | None, typer.Option(help="Choose the split: once for all, or once per collection")
    ] = None,
    condensed: Annotated[bool, typer.Option(help="Remove unjudged documents from the runs first")] = False,
    relevant_from: Annotated[
        list[int] | None, typer.Option(help="Set the lowest relevant grade: once, or once per collection")
    ] = None,
    format: Annotated[
        Literal["text", "markdown", "latex"], typer.Option(help="Choose the format of tables")
    ] = "text",
    forest: Annotated[Path | None, typer.Option(help="Draw the meta-analysis (.svg, .png or .pdf)")] = None,
    per_query: Annotated[
        Path | None, typer.Option(help="Write per-query values and differences as CSV")
    ] = None,
    complementarity: Complementarity = None,
    answers: Answers = None,
    answered: AnsweredTable = None,
    venn: Venn = None,
    halves: Halves = None,
    wins: Wins = None,
    wins_plot: WinsPlot = None,
    lengths: Lengths = None,
    lengths_plot: LengthsPlot = None,
    json: Json = False,
) -> None:
    """Compare runs: significance, intervals, effect sizes. Several collections get a meta-analysis.

    Name each collection, then its runs. NAME=… names a collection or a system. A system that is named twice
    has several runs (seeds), which are averaged.

    --complementarity compares which queries the runs answer in their first documents: |D−S|, |D∩S|, |D∪S|,
    failures and RoC, with one run per system. --answers judges by answer strings (.jsonl or tab-separated): a
    passage that contains one is relevant, and R@k by answers is compared as well.

    --halves averages over the half of the queries where the baseline is best by a measure (easy) and over the
    rest (hard). The papers use RR@10 (RoC) and nDCG@10 (HIL). --wins counts on how many queries each run is
    better than the baseline, equal or worse; with --halves also on each half. --lengths averages over queries
    binned by the length of their relevant documents, in bins of this many words (40 in RoC).

    Example: counterpoint compare dl19=qrels19.txt bm25=a19.trec tasb=b19.trec dl20=qrels20.txt
    bm25=a20.trec tasb=b20.trec --forest forest.svg
    """
    from counterpoint.measure import CompareSettings, comparison_data, comparison_tables, synthesise
    from counterpoint.plots import check_format

    if not measures.split():
        raise ConfigError("--measures names no measure")
    if condensed and answers:
        raise ConfigError(
            "--condensed uses judged documents only, and --answers judges all documents by their texts; "
            "choose one of the two"
        )
    if forest is not None:
        check_format(forest)
    outputs = {
        "--forest": forest, "--per-query": per_query, "--answered": answered, "--venn": venn,
        "--wins-plot": wins_plot, "--lengths-plot": lengths_plot,
    }  # fmt: skip
    check_outputs(outputs)
    cutoffs = checked_cutoffs(complementarity, {"--answers": answers, "--answered": answered, "--venn": venn})
    slicing = Asked(baseline, halves, wins, wins_plot, lengths, lengths_plot)
    slicing.check()
    settings = CompareSettings(
        baseline, test, alternative, correction, alpha, confidence, effect, resamples, seed
    )
    question = Question(measures.split(), condensed, settings, cutoffs, slicing)
    groups = groups_of(what, split)
    thresholds = each(relevant_from, len(groups), "--relevant-from")
    sources = each(answers, len(groups), "--answers")
    found = [_found(*group, question) for group in zip(groups, thresholds, sources, strict=True)]
    comparisons = [comparison for one in found for comparison in one.comparisons]
    overlaps = [one.overlaps for one in found if one.overlaps is not None]
    cut = [one.sliced for one in found if one.sliced is not None]
    syntheses = synthesise(comparisons)
    if forest is not None:
        from counterpoint.plots import forest_plot

        forest_plot(syntheses).save(forest)
    if per_query is not None:
        _write_differences(per_query, comparisons)
    if answered is not None:
        write_answered(answered, overlaps)
    if venn is not None:
        draw_venn(venn, overlaps)
    draw_slices(slicing, cut)
    more = {"complementarity": [one.data() for one in overlaps], "parts": [one.data() for one in cut]}
    tables = [table for one in [*overlaps, *cut] for table in one.tables(baseline)]
    emit(
        {**comparison_data(comparisons, syntheses), **{name: data for name, data in more.items() if data}},
        lambda: _shown([*comparison_tables(comparisons, syntheses), *tables], format),
        json,
    )


def _found(group: Group, relevant_from: int | None, answers: Path | None, question: Question) -> Found:
    from counterpoint.measure import with_judging
    from counterpoint.search import Run

    def whole(names: Sequence[str]) -> list[str]:
        return with_judging(names, condensed=question.condensed, relevant_from=relevant_from)

    asked, slicing = question.measures, question.slicing.named(whole)
    names = dict(zip(asked, whole(asked), strict=True))
    runs = {system: [Run.read(path) for path in paths] for system, paths in group.runs.items()}
    condensed = question.cutoffs if question.condensed else ()
    reports = _reports(group, runs, [*names.values(), *slicing.measures], condensed)
    comparisons = list(_compared(group.name, names, reports, question.settings))
    overlaps = cut = None
    if question.cutoffs:
        threshold = relevant_from or 1
        overlaps = overlaps_of(group, runs, question.cutoffs, threshold, answers, question.condensed)
        comparisons += overlaps.compared(question.settings)
    if slicing.any:
        cut = sliced(group, reports, list(names.values()), slicing, relevant_from or 1)
    return Found(comparisons, overlaps, cut)


def _reports(
    group: Group, runs: Mapping[str, Sequence[Run]], measures: Sequence[str], condensed: Sequence[int]
) -> dict[str, list[Report]]:
    found, qrels, asked = {}, group.judged.qrels, list(dict.fromkeys(measures))
    for system, paths in group.runs.items():
        named = dict(zip(map(str, paths), runs[system], strict=True))
        for path, run in named.items():
            if len(run) and set(run).isdisjoint(qrels):
                raise DataError(
                    f"{path}: has results for none of the judged queries of {group.name}; name a run on it"
                )
        found[system] = list(measure_runs(named, qrels, asked, condensed).values())
    return found


def _compared(
    collection: str,
    measures: Mapping[str, str],
    reports: Mapping[str, Sequence[Report]],
    settings: CompareSettings,
) -> Iterator[Comparison]:
    """One comparison per measure; `measures` maps each name as typed to the name that is measured."""
    from counterpoint.measure import compare as compare_systems

    for asked, measured in measures.items():
        values = {system: [report.per_query[measured] for report in made] for system, made in reports.items()}
        yield replace(compare_systems(collection, asked, values, settings), measured_as=measured)


def _shown(tables: Sequence, form: str) -> str:
    from counterpoint.measure import as_latex, as_markdown, as_text

    write = {"text": as_text, "markdown": as_markdown, "latex": as_latex}[form]
    return "\n\n".join(map(write, tables))


def _write_differences(path: Path, comparisons: Sequence[Comparison]) -> None:
    """Write one row per collection, measure and query: each system's value, each pair's difference."""
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
