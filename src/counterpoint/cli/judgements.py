"""Judgements and runs for commands that measure saved runs, with notes on how they match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from counterpoint.cli.console import note
from counterpoint.errors import ConfigError, DataError

if TYPE_CHECKING:
    from counterpoint.data import Collection
    from counterpoint.measure import Report
    from counterpoint.search import Run
    from counterpoint.types import Qrels

__all__ = ["Judged", "doubts", "judgements_of", "measure_runs"]


@dataclass(frozen=True)
class Judged:
    """The judgements of a split, with their collection if it is known.

    Attributes:
        source: as on the command line.
        qrels: the judgements, of queries that have any.
        collection: None for a bare qrels file.
        split: None for a bare qrels file.
    """

    source: str
    qrels: Qrels
    collection: Collection | None = None
    split: str | None = None

    def whole(self, what: str) -> Collection:
        """Return the collection, which a bare qrels file does not have; `what` needs it.

        Raises:
            ConfigError: there is no collection.
        """
        if self.collection is None:
            raise ConfigError(
                f"{what}: {self.source} holds judgements only; name the whole collection instead"
            )
        return self.collection


def judgements_of(source: str, split: str | None, *, bare: bool = True) -> Judged:
    """Judgements of a collection's split (`test` where there are several), or of a bare qrels file.

    Raises:
        ConfigError: the collection has no judgements, or several splits and none is chosen.
        DataError: the judgements cannot be read or are missing.
    """
    from counterpoint.data import open_collection, read_qrels

    if bare and Path(source).is_file():
        if split is not None:
            note(f"{source} holds judgements only, no splits; --split {split} is ignored")
        return Judged(source, _judged(read_qrels(source), source))
    collection = open_collection(source)
    if split is None and len(collection.splits) > 1 and "test" not in collection.splits:
        raise ConfigError(f"{source} has the splits {', '.join(collection.splits)}; choose one with --split")
    if not collection.splits:
        raise ConfigError(
            f"{source} has no judgements (qrels/<split>.tsv), so there is nothing to measure against"
        )
    used = split or ("test" if "test" in collection.splits else collection.splits[0])
    return Judged(source, _judged(collection.qrels(used), f"{source}, split {used}"), collection, used)


def _judged(qrels: Qrels, source: str) -> Qrels:
    found = {query: grades for query, grades in qrels.items() if grades}
    if not found:
        raise DataError(f"{source}: no judgements; is this the right split?")
    return found


def measure_runs(
    runs: Mapping[str, Run], qrels: Qrels, measures: Sequence[str], condensed: Sequence[int] = ()
) -> dict[str, Report]:
    """Measure each run; note on stderr what it lacks.

    Args:
        runs: by name.
        qrels: judgements.
        measures: what to report.
        condensed: cutoffs of other measurements that leave unjudged documents out.
    """
    from counterpoint.measure import NOTHING_JUDGED, evaluate, nothing_judged, parse_measure

    settings = [dict(parse_measure(name).params) for name in measures]
    cutoffs = [found["cutoff"] for found in settings if found.get("judged_only") and "cutoff" in found]
    cutoffs += condensed
    reports = {}
    for name, run in runs.items():
        reports[name] = report = evaluate(run, qrels, measures)
        if nothing_judged(run, qrels):
            note(f"{name}: {NOTHING_JUDGED}")
        if report.missing:
            note(f"{name}: {len(report.missing)} judged queries have no results; they count as empty")
        if report.ignored:
            note(f"{name}: {len(report.ignored)} queries are not judged; they were ignored")
        if cutoffs and 0 < (deepest := max((len(run[query]) for query in run), default=0)) <= max(cutoffs):
            note(
                f"{name}: no query has more than {deepest} documents. If the run was cut there, condensed "
                "measures are too low: cut runs after unjudged documents are removed, not before"
            )
    return reports


def doubts(qrels: Qrels, measures: Sequence[str]) -> Iterator[str]:
    """Yield why values say nothing: no document is relevant, or condensed lists hold only relevant ones."""
    from counterpoint.measure import parse_measure

    settings = [dict(parse_measure(name).params) for name in measures]
    grades = {grade for found in qrels.values() for grade in found.values()}
    highest, wanted = max(grades), max(found.get("rel", 1) for found in settings)
    if highest < wanted:
        yield f"no document has a grade of {wanted} or more (the highest is {highest}), so none is relevant"
    least = min((found.get("rel", 1) for found in settings if found.get("judged_only")), default=0)
    if least and not any(0 <= grade < least for grade in grades):
        yield (
            f"every judged document has a grade of {least} or more, so condensed lists hold relevant "
            "documents only; their measures hardly depend on the ranking"
        )
