"""`compare --complementarity`: which queries runs answer together and alone, by judgements or answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli.console import note
from counterpoint.cli.groups import Group
from counterpoint.cli.judgements import Judged
from counterpoint.cli.options import cutoffs_of
from counterpoint.cli.progress import reading
from counterpoint.cli.tables import csv_table
from counterpoint.errors import ConfigError, DataError

if TYPE_CHECKING:
    from counterpoint.measure import CompareSettings, Comparison, Shared, Table
    from counterpoint.search import Run
    from counterpoint.types import Qrels

__all__ = [
    "AnsweredTable",
    "Answers",
    "Complementarity",
    "Overlaps",
    "Venn",
    "checked_cutoffs",
    "draw_venn",
    "overlaps_of",
    "write_answered",
]

Complementarity = Annotated[
    str | None, typer.Option(metavar="10,100", help="Compare which queries are answered up to these ranks")
]
Answers = Annotated[
    list[Path] | None, typer.Option(help="Judge by a file of answers; once, or once per collection")
]
AnsweredTable = Annotated[
    Path | None, typer.Option("--answered", help="Write the systems that answer each query as CSV")
]
Venn = Annotated[Path | None, typer.Option(help="Draw the queries answered (.svg, .png or .pdf)")]


@dataclass(frozen=True)
class Overlaps:
    """Overlap of the runs on one collection, for every cutoff.

    Attributes:
        collection: its name.
        by_answers: relevance comes from answer strings, not from judgements.
        shared: one per cutoff, in rising order.
        condensed: unjudged documents were removed from the runs first.
    """

    collection: str
    by_answers: bool
    shared: tuple[Shared, ...]
    condensed: bool

    def tables(self, baseline: str | None) -> list[Table]:
        """Two tables per cutoff; only pairs with the baseline, if there is one."""
        from counterpoint.measure import shared_tables

        return [
            table
            for shared in self.shared
            for table in shared_tables(self.collection, shared, self.by_answers, baseline, self.condensed)
        ]

    def data(self) -> dict[str, Any]:
        """Everything as plain data, queries included."""
        cutoffs = []
        for shared in self.shared:
            queries = {
                query: {"relevant": found.universe, **{name: found.size(name) for name in found.names}}
                for query, found in shared.per_query.items()
            }
            found = {**shared.to_dict(), "per_query": queries}
            if self.by_answers:  # not known: other passages may contain an answer, too
                del found["recall"], found["union_recall"]
            cutoffs.append(found)
        relevance = "answers" if self.by_answers else "judgements"
        return {
            "collection": self.collection,
            "relevance": relevance,
            "condensed": self.condensed,
            "cutoffs": cutoffs,
        }

    def compared(self, settings: CompareSettings) -> Iterator[Comparison]:
        """With answers, compare R@k as a hit rate: 1 for a query that a system answers, else 0."""
        from counterpoint.measure import compare

        if self.by_answers:
            for shared in self.shared:
                found = {
                    name: [{query: float(x.size(name) > 0) for query, x in shared.per_query.items()}]
                    for name in shared.answered.names
                }
                yield compare(self.collection, f"R@{shared.k} by answers", found, settings)


def checked_cutoffs(cutoffs: str | None, needed: Mapping[str, object]) -> list[int]:
    """Parse the cutoffs; empty if --complementarity was not given.

    Raises:
        ConfigError: they are not whole numbers, or an option that needs them is given without them.
    """
    from counterpoint.plots import check_format

    if cutoffs is None:
        for option, value in needed.items():
            if value:
                raise ConfigError(f"{option} needs --complementarity; add it with cutoffs, such as 10,100")
        return []
    if isinstance(venn := needed.get("--venn"), Path):
        check_format(venn)
    return cutoffs_of(cutoffs, "--complementarity")


def overlaps_of(
    group: Group,
    runs: Mapping[str, Sequence[Run]],
    cutoffs: Sequence[int],
    relevant_from: int,
    answers: Path | None,
    condensed: bool,
) -> Overlaps:
    """Count overlaps on one collection, on condensed runs if the measures are: all tables use one ranking.

    Raises:
        ConfigError: a system has several runs, or answers are given without texts.
    """
    from counterpoint.measure import condense, share_of

    for system, found in runs.items():
        if len(found) > 1:
            raise ConfigError(
                f"{system} on {group.name} has {len(found)} runs; --complementarity needs one per system, so "
                "give each run a name of its own"
            )
    single = {system: found[0] for system, found in runs.items()}
    if condensed:
        single = {system: condense(run, group.judged.qrels) for system, run in single.items()}
    if answers is None:
        shared = [share_of(single, group.judged.qrels, k, relevant_from) for k in cutoffs]
    else:
        qrels = _by_answers(group.judged, answers, single, max(cutoffs))
        # As if each cutoff were the only one: a document that no run ranks so high is not judged.
        shared = [share_of(single, _within(qrels, single, k), k, queries=qrels) for k in cutoffs]
    return Overlaps(group.name, answers is not None, tuple(shared), condensed)


def _within(qrels: Qrels, runs: Mapping[str, Run], k: int) -> Qrels:
    first = {
        query: {d for run in runs.values() if query in run for d, _ in run[query][:k]} for query in qrels
    }
    return {query: {d: grade for d, grade in qrels[query].items() if d in first[query]} for query in qrels}


def _by_answers(judged: Judged, path: Path, runs: Mapping[str, Run], k: int) -> Qrels:
    """Judge retrieved documents by answers, for the queries of the split that have some."""
    from counterpoint.data import read_answers
    from counterpoint.measure import judged_by_answers

    collection = judged.whole("--answers")
    given = read_answers(path)
    answers = {query: given[query] for query in judged.qrels if query in given}
    if not answers:
        raise DataError(f"has no answers for the judged queries of {judged.source}", path=path)
    if without := len(judged.qrels) - len(answers):
        note(f"{path}: {without} judged queries of {judged.source} have no answers; they are left out")
    with reading(collection) as documents:
        return judged_by_answers(runs.values(), documents, answers, k)


def draw_venn(path: Path, found: Sequence[Overlaps]) -> None:
    """Draw one diagram per collection and cutoff, in shares of all queries that count."""
    from counterpoint.plots.venn import overlap_plot

    several = len(found) > 1
    overlap_plot(
        [
            (
                f"{overlaps.collection}, " * several + f"first {shared.k}" + " judged" * overlaps.condensed,
                shared.answered,
            )
            for overlaps in found
            for shared in overlaps.shared
        ],
        "queries answered",
        of_universe=True,
    ).save(path)


def write_answered(path: Path, found: Sequence[Overlaps]) -> None:
    """Write one row per collection, cutoff and query."""
    from counterpoint.measure.complements import answered_header, answered_rows

    names = list(dict.fromkeys(name for overlaps in found for name in overlaps.shared[0].answered.names))
    rows = [
        [overlaps.collection, shared.k, query, *row]
        for overlaps in found
        for shared in overlaps.shared
        for query, row in answered_rows(shared.per_query, names).items()
    ]
    csv_table(path, ["collection", "k", "query", *answered_header(names)], rows)
