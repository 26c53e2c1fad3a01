"""`compare --halves`, `--wins`, `--lengths`: compare systems on slices of the queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli.groups import Group
from counterpoint.cli.slicing import SlicingData
from counterpoint.errors import ConfigError

if TYPE_CHECKING:
    from counterpoint.measure import Report, Slicing, Table, WinTieLoss

__all__ = ["Asked", "Halves", "Lengths", "LengthsPlot", "Sliced", "Wins", "WinsPlot", "draw_slices", "sliced"]

Values = Mapping[str, float]
Measured = Mapping[str, Mapping[str, Values]]  # measure to system to query to value

Halves = Annotated[
    str | None,
    typer.Option(metavar="MEASURE", help="Average over easy and hard queries, split by this measure"),
]
Wins = Annotated[
    str | None, typer.Option(metavar="MEASURE", help="Count wins over the baseline by this measure, as RR@10")
]
WinsPlot = Annotated[Path | None, typer.Option(help="Draw the wins (.svg, .png or .pdf)")]
Lengths = Annotated[
    int | None,
    typer.Option(min=1, metavar="WORDS", help="Average over queries, binned by relevant documents' length"),
]
LengthsPlot = Annotated[
    Path | None, typer.Option(help="Draw the first measure over lengths (.svg, .png or .pdf)")
]


@dataclass(frozen=True)
class Asked:
    """The options as typed."""

    baseline: str | None
    halves: str | None
    wins: str | None
    wins_plot: Path | None
    lengths: int | None
    lengths_plot: Path | None

    @property
    def measures(self) -> list[str]:
        """Measures that the options need."""
        return [name for name in (self.halves, self.wins) if name is not None]

    @property
    def any(self) -> bool:
        """Whether any of them was given."""
        return bool(self.measures) or self.lengths is not None

    def named(self, whole: Callable[[Sequence[str]], list[str]]) -> Asked:
        """Replace each measure by the full name under which it is measured."""
        halves, wins = ([] if name is None else whole([name]) for name in (self.halves, self.wins))
        return replace(self, halves=next(iter(halves), None), wins=next(iter(wins), None))

    def check(self) -> None:
        """Check the options before the slow part.

        Raises:
            ConfigError: a baseline or another option is missing, or a picture has an unknown format.
        """
        from counterpoint.plots import check_format

        for option, value in (("--halves", self.halves), ("--wins", self.wins)):
            if value is not None and self.baseline is None:
                raise ConfigError(f"{option} needs a baseline, such as BM25; name it with --baseline")
        for option, path, needs in (
            ("--wins-plot", self.wins_plot, self.wins),
            ("--lengths-plot", self.lengths_plot, self.lengths),
        ):
            if path is not None:
                check_format(path)
                if needs is None:
                    raise ConfigError(f"{option} needs {option.removesuffix('-plot')}")


@dataclass(frozen=True)
class Sliced:
    """Results on slices of one collection's queries; None for what was not asked for.

    Attributes:
        collection: its name.
        systems: each system's values, for each measure that tables show.
        halves: easy and hard queries of the baseline.
        wins: each system against the baseline, by slice.
        wins_by: the measure of the wins.
        lengths: bins of queries by length.
    """

    collection: str
    systems: Measured
    halves: Slicing | None
    wins: Mapping[str, Mapping[str, WinTieLoss]] | None
    wins_by: str
    lengths: Slicing | None

    @property
    def queries(self) -> tuple[str, ...]:
        """All queries of the collection."""
        values = next(iter(self.systems.values()))
        return tuple(next(iter(values.values())))

    def tables(self, baseline: str | None) -> Iterator[Table]:
        """One table per measure for halves and for lengths; one table for wins."""
        from counterpoint.measure import means_over, slices_table, wins_table
        from counterpoint.measure.slices import with_all

        for slicing, first in ((self.halves, "half"), (self.lengths, "words")):
            if slicing is not None:
                slices = with_all(self.queries, slicing)
                for measure, values in self.systems.items():
                    title = f"{measure} on {self.collection} by {slicing.name}"
                    yield slices_table(title, first, slices, means_over(values, slices), slicing.note)
        if self.wins is not None:
            title = f"{self.wins_by} on {self.collection} against {baseline}"
            yield wins_table(title, str(baseline), self.wins)

    def data(self) -> dict[str, Any]:
        """Everything as plain data."""
        found: dict[str, Any] = {"collection": self.collection}
        for kind, slicing in (("halves", self.halves), ("lengths", self.lengths)):
            if slicing is not None:
                found[kind] = {"by": slicing.name, "note": slicing.note, "parts": self._means(slicing)}
        if self.wins is not None:
            runs = {
                name: {label: counts._asdict() for label, counts in slices.items()}
                for name, slices in self.wins.items()
            }
            found["wins"] = {"by": self.wins_by, "runs": runs}
        return found

    def along_lengths(self) -> dict[str, dict[str, float]]:
        """The first measure's mean in each bin of lengths, by system."""
        from counterpoint.measure import means_over
        from counterpoint.measure.slices import NONE

        values = next(iter(self.systems.values()))
        slices = {} if self.lengths is None else self.lengths.slices
        bins = {label: queries for label, queries in slices.items() if label != NONE}
        means = means_over(values, bins)
        return {name: {label: found[name] for label, found in means.items()} for name in values}

    def _means(self, slicing: Slicing) -> list[dict[str, Any]]:
        from counterpoint.measure import means_over

        means = {name: means_over(values, slicing.slices) for name, values in self.systems.items()}
        return [
            {
                "part": label,
                "queries": list(queries),
                "means": {name: found[label] for name, found in means.items()},
            }
            for label, queries in slicing.slices.items()
        ]


def sliced(
    group: Group,
    reports: Mapping[str, Sequence[Report]],
    shown: Sequence[str],
    asked: Asked,
    relevant_from: int,
) -> Sliced:
    """Split one collection's queries as the options say.

    Args:
        group: the collection.
        reports: reports of each system's runs, whose values are averaged.
        shown: measures that tables show.
        asked: the options, with measures named as in the reports.
        relevant_from: lowest grade that is relevant.
    """
    from counterpoint.measure import slice_by_rank, slice_by_width, wins_over
    from counterpoint.measure.compare import mean_of
    from counterpoint.measure.slices import with_all

    values = {
        name: {system: mean_of([r.per_query[name] for r in made]) for system, made in reports.items()}
        for name in [*shown, *asked.measures]
    }
    halves = lengths = wins = None
    baseline = str(asked.baseline)
    if asked.halves is not None:
        halves = slice_by_rank(values[asked.halves][baseline], f"{asked.halves} of {baseline}")
    if asked.lengths is not None:
        found = SlicingData(group.judged, relevant_from).document_lengths
        lengths = slice_by_width(found, "the length of relevant documents", asked.lengths)
    if asked.wins is not None:
        wins = wins_over(values[asked.wins], baseline, with_all(group.judged.qrels, halves))
    systems = {name: values[name] for name in shown}
    return Sliced(group.name, systems, halves, wins, asked.wins or "", lengths)


def draw_slices(asked: Asked, found: Sequence[Sliced]) -> None:
    """Draw the pictures that were asked for, with all collections."""
    from counterpoint.plots.slices import lengths_plot, wins_plot

    prefix = {one.collection: f"{one.collection}: " if len(found) > 1 else "" for one in found}
    if asked.wins_plot is not None:
        rows = {
            f"{prefix[one.collection]}{name}, {label}": counts
            for one in found
            for name, by_slice in (one.wins or {}).items()
            for label, counts in by_slice.items()
        }
        wins_plot(rows, f"{asked.wins} against {asked.baseline}").save(asked.wins_plot)
    if asked.lengths_plot is not None:
        lines = {
            f"{prefix[one.collection]}{name}": line
            for one in found
            for name, line in one.along_lengths().items()
        }
        lengths_plot(lines, next(iter(found[0].systems))).save(asked.lengths_plot)
