"""`compare --complementarity`: what runs answer together and apart, by judgements or by answer strings."""

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
from counterpoint.cli.progress import progress
from counterpoint.cli.tables import csv_table

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
    str | None,
    typer.Option(
        metavar="10,100",
        help="Say what the runs answer together and apart in their first documents: |D−S|, |D∩S|, |D∪S|, "
        "failures, RoC. One run a system.",
        show_default=False,
    ),
]
Answers = Annotated[
    list[Path] | None,
    typer.Option(
        help="Answers by query, .jsonl or tab-separated: a passage that holds one is relevant, and R@k by "
        "answers is compared, too. Once for all collections, or once for each.",
        show_default=False,
    ),
]
AnsweredTable = Annotated[
    Path | None,
    typer.Option(
        "--answered", help="Write a CSV that says which systems answer each query.", show_default=False
    ),
]
Venn = Annotated[
    Path | None,
    typer.Option(help="Draw the queries answered: a .svg, .png or .pdf file.", show_default=False),
]


@dataclass(frozen=True)
class Overlaps:
    """What the runs on one collection share, for every cutoff.

    Attributes:
        collection: its name.
        by_answers: whether answer strings say what is relevant, or judgements.
        shared: by rising cutoff.
        condensed: whether unjudged documents were taken out of the runs first.
    """

    collection: str
    by_answers: bool
    shared: tuple[Shared, ...]
    condensed: bool

    def tables(self, baseline: str | None) -> list[Table]:
        """Two tables a cutoff; pairs with the baseline only, if there is one."""
        from counterpoint.measure import shared_tables

        return [
            table
            for shared in self.shared
            for table in shared_tables(self.collection, shared, self.by_answers, baseline, self.condensed)
        ]

    def data(self) -> dict[str, Any]:
        """All of it, queries included."""
        cutoffs = []
        for shared in self.shared:
            queries = {
                query: {"relevant": found.universe, **{name: found.size(name) for name in found.names}}
                for query, found in shared.per_query.items()
            }
            found = {**shared.to_dict(), "per_query": queries}
            if self.by_answers:  # who knows how many other texts hold an answer?
                found = {
                    name: value for name, value in found.items() if name not in ("recall", "union_recall")
                }
            cutoffs.append(found)
        relevance = "answers" if self.by_answers else "judgements"
        return {
            "collection": self.collection,
            "relevance": relevance,
            "condensed": self.condensed,
            "cutoffs": cutoffs,
        }

    def compared(self, settings: CompareSettings) -> Iterator[Comparison]:
        """By answers, R@k as a hit rate: 1 for every query that a system answers, else 0."""
        from counterpoint.measure import compare

        if self.by_answers:
            for shared in self.shared:
                found = {
                    name: [{query: float(x.size(name) > 0) for query, x in shared.per_query.items()}]
                    for name in shared.answered.names
                }
                yield compare(self.collection, f"R@{shared.k} by answers", found, settings)


def checked_cutoffs(cutoffs: str | None, needed: Mapping[str, object]) -> list[int]:
    """The cutoffs, none where nothing is asked for.

    Raises:
        ConfigError: they are no whole numbers, or something that needs them is given without them.
    """
    from counterpoint.errors import ConfigError
    from counterpoint.plots import check_format

    if cutoffs is None:
        for option, value in needed.items():
            if value:
                raise ConfigError(f"{option} goes with --complementarity; add the cutoffs, such as 10,100")
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
    """Count on one collection, on condensed lists if the measures are of such: all tables go by one ranking.

    Raises:
        ConfigError: a system has several runs, or answers are given and no texts.
    """
    from counterpoint.errors import ConfigError
    from counterpoint.measure import condense, share_of

    for system, found in runs.items():
        if len(found) > 1:
            raise ConfigError(
                f"{system} on {group.name} has {len(found)} runs; --complementarity counts what single runs "
                "answer, so give each run a name of its own"
            )
    single = {system: found[0] for system, found in runs.items()}
    if condensed:
        single = {system: condense(run, group.judged.qrels) for system, run in single.items()}
    if answers is None:
        shared = [share_of(single, group.judged.qrels, k, relevant_from) for k in cutoffs]
    else:
        qrels = _by_answers(group.judged, answers, single, max(cutoffs))
        # Each cutoff as if it were asked for alone: a document that nobody ranks so high is not judged.
        shared = [share_of(single, _within(qrels, single, k), k, queries=qrels) for k in cutoffs]
    return Overlaps(group.name, answers is not None, tuple(shared), condensed)


def _within(qrels: Qrels, runs: Mapping[str, Run], k: int) -> Qrels:
    """What is judged of the first `k` documents of every run."""
    first = {
        query: {d for run in runs.values() if query in run for d, _ in run[query][:k]} for query in qrels
    }
    return {query: {d: grade for d, grade in qrels[query].items() if d in first[query]} for query in qrels}


def _by_answers(judged: Judged, path: Path, runs: Mapping[str, Run], k: int) -> Qrels:
    """Judgements of what the runs retrieve, for the queries of the split that have answers."""
    from counterpoint.data import read_answers
    from counterpoint.errors import DataError
    from counterpoint.measure import judged_by_answers

    collection = judged.whole("--answers")
    given = read_answers(path)
    answers = {query: given[query] for query in judged.qrels if query in given}
    if not answers:
        raise DataError(f"has answers for none of the judged queries of {judged.source}", path=path)
    if without := len(judged.qrels) - len(answers):
        note(f"{path}: {without} judged queries of {judged.source} have no answers; they do not count there")
    with progress("reading", "documents", collection.size) as update:

        def counted() -> Iterator:
            for number, document in enumerate(collection.documents(), 1):
                yield document
                update(number)

        return judged_by_answers(runs.values(), counted(), answers, k)


def draw_venn(path: Path, found: Sequence[Overlaps]) -> None:
    """One diagram a collection and cutoff, in shares of all queries that count."""
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
    """A row a collection, cutoff and query."""
    from counterpoint.measure.complements import answered_header, answered_rows

    names = list(dict.fromkeys(name for overlaps in found for name in overlaps.shared[0].answered.names))
    rows = [
        [overlaps.collection, shared.k, query, *row]
        for overlaps in found
        for shared in overlaps.shared
        for query, row in answered_rows(shared.per_query, names).items()
    ]
    csv_table(path, ["collection", "k", "query", *answered_header(names)], rows)
