"""Turn a grid into cells: resolve each combination, join equal ones, and list impossible ones.

A cell's identity is everything that decides its result, after all settings have been resolved against the
model: which parts propose and score, with which weights, stored how. Combinations with the same identity are
one cell, so no rule is needed for which settings a workflow uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, final

from counterpoint.errors import ConfigError
from counterpoint.index import IndexSettings, LexicalSettings, SetLayout, TextModel
from counterpoint.search import LEXICAL, SearchSettings, Workflow
from counterpoint.search.settings import Plan, parse_feedback, parse_weights, plan_of_parts
from counterpoint.sweep.grid import Grid, ModelEntry
from counterpoint.sweep.judged import Judged, digest

__all__ = ["Cell", "NotApplicable", "SweepModel", "cells_of"]

NO_MODEL = "BM25"
NO_DIFFERENCE = "–"
FUSED = ("scale", "normalise", "method", "candidates")  # settings that matter only if parts are fused


class SweepModel(TextModel, Protocol):
    """A model that also proposes index settings, as `Model` does."""

    def index_settings(self, name: str | None = None, **changes: Any) -> IndexSettings:
        """Settings of an index. `changes` are fields of `IndexSettings`."""
        ...


class NotApplicable(NamedTuple):
    """A combination of the grid that is impossible, with the reason."""

    model: str
    workflow: str
    reason: str


@final
@dataclass(frozen=True)
class Cell:
    """One evaluation.

    Attributes:
        collection: its label.
        model: None if no vectors are used.
        workflow: how to search.
        combinations: the points of the grid that resolve to this cell.
        options: fusion, weights and feedback of the grid, where they make a difference.
        index: how the index is built.
        search: how it is searched.
        k: documents retrieved per query.
        index_identity: everything that decides the index.
        identity: everything that decides the result.
    """

    collection: str
    model: ModelEntry | None
    workflow: Workflow
    combinations: tuple[Mapping[str, Any], ...]
    options: Mapping[str, str]
    index: IndexSettings
    search: SearchSettings
    k: int
    index_identity: Mapping[str, Any]
    identity: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """Name of the result: a hash of its identity."""
        return digest(self.identity)[:16]

    @cached_property
    def index_key(self) -> str:
        """Name of the index: a hash of its identity."""
        return digest(self.index_identity)[:16]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the index that a search reads."""
        return tuple(dict.fromkeys([*self.identity["first"], *self.identity["parts"]]))

    def configuration(self, settings: Mapping[str, Sequence[Any]]) -> dict[str, str]:
        """What distinguishes the cell: model, workflow, and each setting with several values.

        A setting makes no difference (`–`) if all its values resolve to this cell.
        """
        shown = {"model": self.model.name if self.model else NO_MODEL, "workflow": str(self.workflow)}
        for name, values in settings.items():
            if len(values) > 1:
                here = dict.fromkeys(str(combination[name]) for combination in self.combinations)
                shown[name] = NO_DIFFERENCE if len(here) == len(values) else " = ".join(here)
        return shown

    def label(self, settings: Mapping[str, Sequence[Any]]) -> str:
        """Name for messages."""
        words = [word for word in self.configuration(settings).values() if word != NO_DIFFERENCE]
        return f"{self.collection}: {' '.join(words)}"


def cells_of(
    grid: Grid, models: Mapping[ModelEntry, SweepModel | None], collections: Sequence[Judged]
) -> tuple[list[Cell], list[NotApplicable]]:
    """The cells of a grid for some of its models, in the order of the grid, and the impossible combinations.

    A model is None for BM25 alone.
    """
    cells: dict[str, Cell] = {}
    impossible: dict[NotApplicable, None] = {}
    for entry, model in models.items():
        fingerprint = None if model is None else model.fingerprint()
        for workflow in grid.workflows:
            for settings in grid.combinations():
                try:
                    made = _resolve((entry, model, fingerprint), workflow, settings)
                except ConfigError as error:
                    impossible[NotApplicable(entry.name, workflow, "; ".join(error.faults))] = None
                    continue
                for judged in collections:
                    cell = _on(judged, made, grid.k)
                    same = cells.get(cell.key)
                    if same is not None:
                        cell = replace(same, combinations=same.combinations + cell.combinations)
                    cells[cell.key] = cell
    return list(cells.values()), list(impossible)


@final
@dataclass(frozen=True)
class Resolved:
    """A resolved combination, without a collection."""

    model: ModelEntry | None
    fingerprint: str | None
    combination: Mapping[str, Any]
    workflow: Workflow
    options: Mapping[str, str]
    index: IndexSettings
    layouts: Mapping[str, SetLayout]
    search: SearchSettings
    plan: Plan


def _resolve(
    known: tuple[ModelEntry, SweepModel | None, str | None], workflow: Workflow, settings: Mapping[str, Any]
) -> Resolved:
    """Raises ConfigError if the combination is impossible."""
    entry, model, fingerprint = known
    combination = {"model": entry.name, "workflow": workflow, **settings}
    given = {key: settings[key] for key in ("analyzer", "identifiers", "k1", "b") if key in settings}
    bm25 = LexicalSettings(**given)
    index = IndexSettings(lexical=bm25)
    if model is not None:
        own = replace(model.index_settings().lexical or LexicalSettings(), **given)
        vectors = {key: settings[key] for key in ("codec", "pool_factor") if key in settings}
        index = model.index_settings(entry.model, lexical=own, **vectors)
    layouts = index.layouts(model)
    search, options = _searched(workflow, layouts, index.search, settings)
    plan = plan_of_parts(workflow, layouts, True, search)
    if {*plan.first, *plan.weights} == {LEXICAL}:  # no model is used: one index and one cell for all
        alone = SearchSettings(weights={LEXICAL: 1.0})
        plan = plan_of_parts("lexical", {}, True, alone)
        return Resolved(None, None, combination, "lexical", {}, IndexSettings(lexical=bm25), {}, alone, plan)
    return Resolved(entry, fingerprint, combination, workflow, options, index, layouts, search, plan)


def _searched(
    workflow: Workflow,
    layouts: Mapping[str, SetLayout],
    said: Mapping[str, Any] | None,
    settings: Mapping[str, Any],
) -> tuple[SearchSettings, dict[str, str]]:
    """The model's search settings, with the grid's changes if the workflow fuses parts."""
    parts = [LEXICAL, *layouts]
    search = SearchSettings.for_parts(parts, said)
    every = replace(search, weights=dict.fromkeys(parts, 1.0))
    if len(plan_of_parts(workflow, layouts, True, every).weights) == 1:
        return search, {}
    options = {key: settings[key] for key in ("fusion", "weights") if key in settings}
    if "feedback" in settings and workflow == "hybrid" and any(each.pooled for each in layouts.values()):
        options["feedback"] = settings["feedback"]
        search = replace(search, **parse_feedback(options["feedback"]))
    if "weights" in options:
        search = search.with_weights(parse_weights(options["weights"], parts))
    if "fusion" in options:
        search = search.with_fusion(options["fusion"])
    return search, options


def _on(judged: Judged, made: Resolved, k: int) -> Cell:
    stored: dict[str, Any] = {name: layout.to_dict() for name, layout in made.layouts.items()}
    stored[LEXICAL] = made.index.lexical and asdict(made.index.lexical)
    index_identity = {
        "corpus": judged.digests["corpus"],
        "model": made.fingerprint,
        "stored": stored,
        "search": made.index.search,  # kept in the index, so that evaluating it by hand gives the same
    }
    read = dict.fromkeys([*made.plan.first, *made.plan.weights])
    together = len(read) + len(made.plan.feedback) > 1
    identity = {
        **judged.digests,
        "model": made.fingerprint,
        "first": list(made.plan.first),
        "parts": dict(made.plan.weights),
        "stored": {part: stored[part] for part in read},
        "idf": {part: power for part, power in made.search.idf.items() if part in read},
        "fusion": {key: getattr(made.search, key) for key in FUSED} if together else None,
        "k": k,
    }
    if made.plan.adapt:
        identity["adapt"] = dict(made.plan.adapt)
    if made.plan.feedback:
        fed = made.search.feedback, made.search.feedback_documents
        identity["feedback"] = {"sets": list(made.plan.feedback), "weight": fed[0], "documents": fed[1]}
    return Cell(
        judged.entry.name,
        made.model,
        made.workflow,
        (made.combination,),
        made.options,
        made.index,
        made.search,
        k,
        index_identity,
        identity,
    )
