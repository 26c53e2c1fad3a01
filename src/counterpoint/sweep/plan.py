"""The plan of a sweep: collections read, models loaded, cells resolved. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from counterpoint.errors import CounterpointError
from counterpoint.sweep.cells import Cell, NotApplicable, SweepModel, cells_of
from counterpoint.sweep.grid import Grid, ModelEntry
from counterpoint.sweep.judged import Judged, open_judged

__all__ = ["Failure", "Loader", "Outcome", "SweepPlan", "plan_sweep"]

Loader = Callable[[str], SweepModel]
"""Loads a model by its name, folder or hub id."""


class Failure(NamedTuple):
    """A failure, and its reason."""

    where: str
    message: str


@final
@dataclass(frozen=True)
class SweepPlan:
    """A resolved grid.

    Attributes:
        grid: as it was read.
        collections: the usable ones, by label.
        cells: all evaluations, each once, in the order of the grid.
        not_applicable: impossible combinations, each once.
        failures: models and collections that cannot be used.
    """

    grid: Grid
    collections: Mapping[str, Judged]
    cells: tuple[Cell, ...]
    not_applicable: tuple[NotApplicable, ...]
    failures: tuple[Failure, ...]


@final
@dataclass
class Outcome:
    """The results of a sweep.

    Attributes:
        results: each cell's result as stored in the folder, by the cell's key.
        computed: keys of the cells that were computed now.
        failures: those of the plan, then those of cells.
        encoded: number of texts that were encoded because they were not in the cache.
    """

    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    encoded: int = 0


def plan_sweep(grid: Grid, load: Loader) -> SweepPlan:
    """Resolve a grid: read its collections and load each of its models once.

    A collection or model with an error that the user can fix becomes a `Failure`. The rest of the grid
    continues.
    """
    failures: list[Failure] = []
    collections: dict[str, Judged] = {}
    for entry in grid.collections:
        try:
            collections[entry.name] = open_judged(entry)
        except CounterpointError as error:
            failures.append(Failure(f"collection {entry.name}", str(error)))
    models: dict[ModelEntry, SweepModel | None] = {}
    for model in grid.models:
        try:
            models[model] = None if model.model is None else load(model.model)
        except CounterpointError as error:
            failures.append(Failure(f"model {model.name}", str(error)))
    cells, impossible = cells_of(grid, models, list(collections.values()))
    return SweepPlan(grid, collections, tuple(cells), tuple(impossible), tuple(failures))
