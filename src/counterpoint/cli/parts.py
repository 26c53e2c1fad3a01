"""`compare --halves`, `--wins`, `--lengths`: systems over parts of the queries, and against the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli.groups import Group
from counterpoint.cli.slicing import Material

if TYPE_CHECKING:
    from counterpoint.measure import Report, Slicing, Table, WinTieLoss

__all__ = ["Asked", "Halves", "Lengths", "LengthsPlot", "Parts", "Wins", "WinsPlot", "draw_parts", "parts_of"]

Values = Mapping[str, float]
Measured = Mapping[str, Mapping[str, Values]]  # measure to system to query to value

Halves = Annotated[
    str | None,
    typer.Option(
        metavar="MEASURE",
        help="Means over the half of the queries where the baseline is best by this measure (easy), and over "
        "the rest (hard): RR@10 in RoC, nDCG@10 in HIL.",
        show_default=False,
    ),
]
Wins = Annotated[
    str | None,
    typer.Option(
        metavar="MEASURE",
        help="On which share of the queries each run is better than the baseline, equal and worse, by this "
        "measure, such as RR@10; with --halves on each half, too.",
        show_default=False,
    ),
]
WinsPlot = Annotated[
    Path | None, typer.Option(help="Draw the wins: a .svg, .png or .pdf file.", show_default=False)
]
Lengths = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="WORDS",
        help="Means over queries binned by the length of their relevant documents, in bins of so many words; "
        "40 in RoC.",
        show_default=False,
    ),
]
LengthsPlot = Annotated[
    Path | None,
    typer.Option(help="Draw the first measure over lengths: a .svg, .png or .pdf file.", show_default=False),
]


@dataclass(frozen=True)
class Asked:
    """The options; measures stand as they were typed."""

    baseline: str | None
    halves: str | None
    wins: str | None
    wins_plot: Path | None
    lengths: int | None
    lengths_plot: Path | None

    @property
    def measures(self) -> list[str]:
        """What must be measured for them."""
        return [name for name in (self.halves, self.wins) if name is not None]

    @property
    def any(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.measures) or self.lengths is not None

    def named(self, whole: Callable[[Sequence[str]], list[str]]) -> Asked:
        """The same with the measures called as they are measured."""
        halves, wins = ([] if name is None else whole([name]) for name in (self.halves, self.wins))
        return replace(self, halves=next(iter(halves), None), wins=next(iter(wins), None))

    def check(self) -> None:
        """Refuse what cannot be carried out.

        Raises:
            ConfigError: a baseline or another option is missing, or a picture of an unknown kind.
        """
        from counterpoint.errors import ConfigError
        from counterpoint.plots import check_format

        for option, value in (("--halves", self.halves), ("--wins", self.wins)):
            if value is not None and self.baseline is None:
                raise ConfigError(f"{option} goes by a baseline, such as BM25; name it with --baseline")
        for option, path, needs in (
            ("--wins-plot", self.wins_plot, self.wins),
            ("--lengths-plot", self.lengths_plot, self.lengths),
        ):
            if path is not None:
                check_format(path)
                if needs is None:
                    raise ConfigError(f"{option} goes with {option.removesuffix('-plot')}")


@dataclass(frozen=True)
class Parts:
    """What was asked for on one collection; None where it was not.

    Attributes:
        collection: its name.
        systems: for each measure that tables show each system's values.
        halves: of the baseline.
        wins: each system against the baseline, part by part.
        wins_by: the measure of the wins.
        lengths: bins.
    """

    collection: str
    systems: Measured
    halves: Slicing | None
    wins: Mapping[str, Mapping[str, WinTieLoss]] | None
    wins_by: str
    lengths: Slicing | None

    @property
    def queries(self) -> tuple[str, ...]:
        """All of them."""
        values = next(iter(self.systems.values()))
        return tuple(next(iter(values.values())))

    def tables(self, baseline: str | None) -> Iterator[Table]:
        """A table a measure for halves and for lengths; one for wins."""
        from counterpoint.measure import means_over, parts_table, wins_table
        from counterpoint.measure.parts import with_all

        for slicing, first in ((self.halves, "half"), (self.lengths, "words")):
            if slicing is not None:
                parts = with_all(self.queries, slicing)
                for measure, values in self.systems.items():
                    title = f"{measure} on {self.collection} by {slicing.name}"
                    yield parts_table(title, first, parts, means_over(values, parts), slicing.note)
        if self.wins is not None:
            title = f"{self.wins_by} on {self.collection} against {baseline}"
            yield wins_table(title, str(baseline), self.wins)

    def data(self) -> dict[str, Any]:
        """All of it."""
        found: dict[str, Any] = {"collection": self.collection}
        for kind, slicing in (("halves", self.halves), ("lengths", self.lengths)):
            if slicing is not None:
                found[kind] = {"by": slicing.name, "note": slicing.note, "parts": self._means(slicing)}
        if self.wins is not None:
            runs = {
                name: {part: counts._asdict() for part, counts in parts.items()}
                for name, parts in self.wins.items()
            }
            found["wins"] = {"by": self.wins_by, "runs": runs}
        return found

    def along_lengths(self) -> dict[str, dict[str, float]]:
        """By system the first measure's mean of each bin."""
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
                "part": part,
                "queries": list(queries),
                "means": {name: found[part] for name, found in means.items()},
            }
            for part, queries in slicing.slices.items()
        ]


def parts_of(
    group: Group,
    reports: Mapping[str, Sequence[Report]],
    shown: Sequence[str],
    asked: Asked,
    relevant_from: int,
) -> Parts:
    """Cut one collection's queries as asked.

    Args:
        group: the collection.
        reports: by system of each of its runs, whose values are averaged.
        shown: measures that tables show.
        asked: what, with its measures as the reports call them.
        relevant_from: lowest grade that is relevant.
    """
    from counterpoint.measure import slice_by_rank, slice_by_width, wins_over
    from counterpoint.measure.compare import mean_of
    from counterpoint.measure.parts import with_all

    values = {
        name: {system: mean_of([r.per_query[name] for r in made]) for system, made in reports.items()}
        for name in [*shown, *asked.measures]
    }
    halves = lengths = wins = None
    baseline = str(asked.baseline)
    if asked.halves is not None:
        halves = slice_by_rank(values[asked.halves][baseline], f"{asked.halves} of {baseline}")
    if asked.lengths is not None:
        found = Material(group.judged, relevant_from).document_lengths
        lengths = slice_by_width(found, "the length of relevant documents", asked.lengths)
    if asked.wins is not None:
        wins = wins_over(values[asked.wins], baseline, with_all(group.judged.qrels, halves))
    systems = {name: values[name] for name in shown}
    return Parts(group.name, systems, halves, wins, asked.wins or "", lengths)


def draw_parts(asked: Asked, found: Sequence[Parts]) -> None:
    """The pictures that were asked for, of all collections."""
    from counterpoint.plots.parts import lengths_plot, wins_plot

    prefix = {parts.collection: f"{parts.collection}: " if len(found) > 1 else "" for parts in found}
    if asked.wins_plot is not None:
        rows = {
            f"{prefix[parts.collection]}{name}, {part}": counts
            for parts in found
            for name, by_part in (parts.wins or {}).items()
            for part, counts in by_part.items()
        }
        wins_plot(rows, f"{asked.wins} against {asked.baseline}").save(asked.wins_plot)
    if asked.lengths_plot is not None:
        lines = {
            f"{prefix[parts.collection]}{name}": line
            for parts in found
            for name, line in parts.along_lengths().items()
        }
        lengths_plot(lines, next(iter(found[0].systems))).save(asked.lengths_plot)
