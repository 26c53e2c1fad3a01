"""What a sweep will do: collections read, models asked what they are, cells resolved. Nothing is written."""

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
"""From a model's name, folder or hub id to the model."""


class Failure(NamedTuple):
    """What could not be done, and why."""

    where: str
    message: str


@final
@dataclass(frozen=True)
class SweepPlan:
    """A grid with everything resolved.

    Attributes:
        grid: as it was read.
        collections: by label, those that can be used.
        cells: all evaluations, each once, in the order of the grid.
        not_applicable: combinations that cannot be, each once.
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
    """What a sweep came to.

    Attributes:
        results: by the key of a cell, its result as it stands in the folder.
        computed: keys of the cells that were not there before.
        failures: those of the plan, then those of cells.
        encoded: number of texts that were encoded and not found in the cache.
    """

    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    encoded: int = 0


def plan_sweep(grid: Grid, load: Loader) -> SweepPlan:
    """Resolve a grid: read its collections and load each of its models once.

    A collection or a model that fails with an error that a user can put right becomes a `Failure`; the rest
    of the grid stands.
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
