"""All faults of a recipe at once, before anything is loaded; what needs the data, in a second look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast, get_type_hints

from counterpoint.config import Declared, plain
from counterpoint.encode import DualEncoder, Head
from counterpoint.encode.sources import could_be_located
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.learn import (
    Build,
    CachedContrastive,
    Fit,
    Loss,
    NegativeCache,
    NoImprovement,
    Objective,
    Train,
    TrainingSet,
)
from counterpoint.learn.start import Start
from counterpoint.measure import parse_measure
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.recipe.patterns import could_match
from counterpoint.recipe.recipe import Recipe, declared_in
from counterpoint.recipe.typed import faults_of
from counterpoint.score import Dot
from counterpoint.search import LEXICAL, SearchSettings

__all__ = ["check", "check_data"]


def check(recipe: Recipe) -> list[str]:
    """Everything that can be known to be wrong with a recipe; nothing is loaded for it.

    Where values are not of the types that their signatures ask for, only that is listed: the rest would be
    about other values.
    """
    faults = list(faults_of(recipe.resolved(), Recipe, "recipe"))
    if faults:
        return faults
    return [
        *_names(recipe),
        *_model(recipe),
        *_start(recipe),
        *_search(recipe),
        *_measures(recipe),
        *_vector_sets(recipe, recipe.scorer, "scorer"),
        *(fault for stage in recipe.stages for fault in _stage(recipe, stage)),
    ]


def check_data(recipe: Recipe, data: TrainingSet) -> list[str]:
    """What is wrong with a recipe for these data.

    A loss that learns from a teacher's scores needs a teacher, or data that come with scores.
    """
    scored = any(example.scores for example in data.examples)
    return [
        f"stages.{stage.name}: {loss.label} learns from a teacher's scores; the data have none, so give the "
        "stage a teacher, or take data that come with scores"
        for stage in _training(recipe)
        for loss in _losses(stage)
        if "teacher" in loss.needs and stage.teacher is None and not scored
    ]


# -- the whole -----------------------------------------------------------------------------------------


def _names(recipe: Recipe) -> Iterator[str]:
    if not recipe.stages:
        yield "stages: there is none; a recipe has at least one"
    for name, count in Counter(stage.name for stage in recipe.stages).items():
        if count > 1:
            yield f"stages: {count} of them are named {name!r}; give every stage its own name"
        if not name or name != Path(name).name or name.startswith("."):
            yield f"stages: the name {name!r} cannot be that of a file; take letters, digits and dashes"
    built = [at for at, stage in enumerate(recipe.stages) if isinstance(stage, Build)]
    changed = [at for at, stage in enumerate(recipe.stages) if not isinstance(stage, Build)]
    if built and changed and built[0] < changed[-1]:
        later, early = recipe.stages[changed[-1]].name, recipe.stages[built[0]].name
        yield f"stages.{early}: builds an index, and {later!r} changes the model afterwards; build at the end"


def _model(recipe: Recipe) -> Iterator[str]:
    encoder = _encoder(recipe)
    ours, theirs = list(encoder.query.heads), list(encoder.encoder("document").heads)
    if sorted(ours) != sorted(theirs):
        yield f"model: queries become {', '.join(ours)}, documents {', '.join(theirs)}; they must be equal"
    if isinstance(recipe.model, Model):
        yield from _unknown_sets("model.transforms", recipe.model.transforms, ours)
    yield from _unknown_sets("model.shared", encoder.shared, ours)
    for path, part in declared_in(recipe, "recipe"):
        if isinstance(part, Part) and part.is_set_up:
            yield f"{path}: is set up already; a recipe declares, and what a part has learnt is no setting"
            break  # its children are, too
    yield from _sources(declared_in(recipe, ""))


def _sources(parts: Iterable[tuple[str, Declared]]) -> Iterator[str]:
    """Arguments that name a model (`source`) or a file (`file`) that is not there."""
    for path, part in parts:
        source, file = getattr(part, "source", None), getattr(part, "file", None)
        if isinstance(source, str) and not could_be_located(source):
            yield f"{path}.source: no such folder, and not a hub id such as 'owner/name': {source!r}"
        if isinstance(file, str) and not Path(file).is_file():
            yield f"{path}.file: no such file: {file!r}"


def _start(recipe: Recipe) -> Iterator[str]:
    if recipe.start is not None:
        try:
            Start.find(recipe.start)
        except ArtifactError as error:
            yield f"start: {error}"


def _search(recipe: Recipe) -> Iterator[str]:
    said = plain(recipe.declared_model().search or {})
    hints = get_type_hints(SearchSettings)
    unknown = [name for name in said if name not in hints]
    if unknown:
        yield f"search: there is no setting {', '.join(map(repr, unknown))}; there are {', '.join(hints)}"
    sets = list(_encoder(recipe).query.heads)
    for name in (name for name in said if name in hints):
        faults = list(faults_of(said[name], hints[name], f"search.{name}"))
        yield from faults
        if name in ("weights", "idf") and not faults:
            yield from _unknown_sets(
                f"search.{name}", said[name], [LEXICAL, *sets] if name == "weights" else sets
            )


def _measures(recipe: Recipe) -> Iterator[str]:
    for name in recipe.measures:
        try:
            parse_measure(name)
        except ConfigError as error:
            yield from (f"measures: {fault}" for fault in error.faults)


# -- one stage -----------------------------------------------------------------------------------------


def _stage(recipe: Recipe, stage: Any) -> Iterator[str]:
    where = f"stages.{stage.name}"
    yield from _vector_sets(recipe, stage, where)
    if isinstance(stage, Fit):
        transforms = recipe.model.transforms if isinstance(recipe.model, Model) else {}
        if stage.on in _encoder(recipe).query.heads and stage.on not in transforms:
            yield f"{where}: fits the transforms of {stage.on!r}, and the model has none on that set"
    if isinstance(stage, Train):
        yield from (f"{where}: {fault}" for fault in _train(recipe, stage))


def _vector_sets(recipe: Recipe, value: Any, where: str) -> Iterator[str]:
    """Arguments called `on`, each of which names a vector set."""
    heads = _encoder(recipe).query.heads
    for path, part in declared_in(value, where):
        on = getattr(part, "on", None)
        if not isinstance(on, str):
            continue
        yield from _unknown_sets(path, [on], list(heads))
        if isinstance(part, Dot) and on in heads and not cast(Head, heads[on]).pooled:
            yield f"{path}: Dot takes one vector a text, and {on!r} has many; pool it or use MaxSim"


def _train(recipe: Recipe, stage: Train) -> Iterator[str]:
    if stage.scorer is None and recipe.scorer is None:
        yield "no scorer; give the stage one, or the recipe one for all stages"
    yield from _loss_needs(stage)
    modules = dict(_encoder(recipe).named_children())
    others = {"transforms": getattr(recipe.model, "transforms", None), "objective": stage.objective}
    others["scorer"] = stage.scorer or recipe.scorer
    modules |= {name: module for name, module in others.items() if module is not None}
    for field in ("learn", "freeze"):
        for pattern in getattr(stage, field):
            if not could_match(pattern, modules):
                yield f"{field}: {pattern!r} matches no parameter; names begin with {', '.join(modules)}"
    development = recipe.data.development is not None or recipe.data.held_out > 0
    if isinstance(stage.stop, NoImprovement) and stage.stop.measure not in recipe.measures:
        yield (
            f"stop: goes by {stage.stop.measure}, which is not evaluated; the recipe's measures are "
            f"{', '.join(recipe.measures) or 'none'}"
        )
    if stage.keep == "best" and not recipe.measures:
        yield "keep='best' needs a measure, and the recipe evaluates none; name measures or keep='last'"
    if not development and (stage.keep == "best" or stage.stop is not None):
        yield (
            "keep='best' and a stop rule need development queries; name data.development, or hold some out "
            "with data.held_out, or keep='last' without a stop rule"
        )


def _loss_needs(stage: Train) -> Iterator[str]:
    losses = _losses(stage)
    for loss in losses:
        if "batch" in loss.needs and stage.batch < 2:
            yield f"{loss.label} needs other queries in the batch; batch is {stage.batch}, take 2 or more"
        drawn = stage.cache is not None and "teacher" not in loss.needs  # no teacher knows what is drawn
        if "negatives" in loss.needs and not stage.negatives and not drawn:
            yield f"{loss.label} compares a query's own documents; give the stage negatives"
        if "cache" in loss.needs and stage.cache is None:
            yield f"{loss.label} draws from a negative cache; give the stage cache=NegativeCache(...)"
    if stage.teacher is not None and not any("teacher" in loss.needs for loss in losses):
        yield "teacher: no loss of this stage uses it; leave it out"
    if stage.cache is not None:
        yield from (f"cache: {fault}" for fault in _cache(stage.cache, losses))


def _cache(cache: NegativeCache, losses: list[Loss]) -> Iterator[str]:
    """Losses of the cache read one drawn negative, those with a teacher none, all others every one."""
    if all("teacher" in loss.needs for loss in losses):
        yield "no loss of this stage uses it; leave it out"
        return
    of_cache = [loss for loss in losses if isinstance(loss, CachedContrastive)]
    for loss in of_cache:
        if loss.scale != cache.scale:
            yield (
                f"negatives are drawn with scale {cache.scale:g}, and {loss.label} has scale {loss.scale:g}; "
                "only if they are equal is its gradient that of the softmax"
            )
    if of_cache and cache.draws > 1 and all(loss in of_cache or "teacher" in loss.needs for loss in losses):
        names = ", ".join(loss.label for loss in of_cache)
        yield f"draws is {cache.draws}, and {names} reads one drawn negative; take 1"


# -- what a recipe is made of --------------------------------------------------------------------------


def _encoder(recipe: Recipe) -> DualEncoder:
    return recipe.model.encoder if isinstance(recipe.model, Model) else recipe.model


def _training(recipe: Recipe) -> list[Train]:
    return [stage for stage in recipe.stages if isinstance(stage, Train)]


def _losses(stage: Train) -> list[Loss]:
    """The terms of a stage's objective."""
    objective = stage.objective
    if not isinstance(objective, Objective):
        return [objective]
    return [loss for loss in objective.losses if isinstance(loss, Loss)]


def _unknown_sets(path: str, names: Iterable[str], sets: list[str]) -> Iterator[str]:
    for name in names:
        if name not in sets:
            yield f"{path}: there is no vector set {name!r}; there are {', '.join(sets)}"
