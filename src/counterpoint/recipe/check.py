"""Find all faults of a recipe before anything is loaded. `check_data` finds those that depend on the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from torch import nn

from counterpoint.encode.heads import WholeWords
from counterpoint.encode.sources import could_be_located
from counterpoint.encode.words import stem
from counterpoint.errors import ArtifactError, ConfigError, MissingExtraError
from counterpoint.learn import Build, NoImprovement, Train, TrainingSet
from counterpoint.learn.matches import NO_MASK
from counterpoint.learn.start import Start
from counterpoint.measure import parse_measure
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.recipe.check_pairs import pair_faults
from counterpoint.recipe.check_vectors import vector_faults
from counterpoint.recipe.recipe import Recipe, declared_in, training
from counterpoint.typed import faults_of

__all__ = ["check", "check_data"]


def check(recipe: Recipe) -> list[str]:
    """List everything that is wrong with a recipe, without loading anything.

    If values have wrong types, only these are listed, because other checks need correct types.
    """
    if faults := list(faults_of(recipe.resolved(), Recipe, "recipe")):
        return faults
    model = recipe.declared_model()
    return [
        *_names(recipe),
        *_declared(recipe),
        *_start(recipe),
        *_measures(recipe),
        *(vector_faults(recipe, model) if isinstance(model, Model) else pair_faults(recipe)),
        *(f"stages.{stage.name}: {fault}" for stage in training(recipe) for fault in _train(recipe, stage)),
    ]


def check_data(recipe: Recipe, data: TrainingSet) -> list[str]:
    """List what is wrong with a recipe for these data.

    A loss that learns from a teacher's scores needs a teacher, or data with scores.
    """
    scored = any(example.scores for example in data.examples)
    return [
        f"stages.{stage.name}: {loss.label} learns from a teacher's scores; the data have none, so give the "
        "stage a teacher, or use data with scores"
        for stage in training(recipe)
        for loss in stage.losses
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
            yield f"stages: the name {name!r} cannot be that of a file; use letters, digits and dashes"
    built = [at for at, stage in enumerate(recipe.stages) if isinstance(stage, Build)]
    changed = [at for at, stage in enumerate(recipe.stages) if not isinstance(stage, Build)]
    if built and changed and built[0] < changed[-1]:
        later, early = recipe.stages[changed[-1]].name, recipe.stages[built[0]].name
        yield f"stages.{early}: builds an index, and {later!r} changes the model afterwards; build at the end"


def _declared(recipe: Recipe) -> Iterator[str]:
    """Parts that are set up, models (`source`) and files (`file`) that do not exist, missing stemmers."""
    for path, part in declared_in(recipe, "recipe"):
        if isinstance(part, Part) and part.is_set_up:
            yield f"{path}: is set up already; a recipe only declares, and learnt weights are no settings"
            break  # its children are, too
    for path, part in declared_in(recipe, ""):
        source, file = getattr(part, "source", None), getattr(part, "file", None)
        if isinstance(source, str) and not could_be_located(source):
            yield f"{path}.source: no such folder, and not a hub id such as 'owner/name': {source!r}"
        if isinstance(file, str) and not Path(file).is_file():
            yield f"{path}.file: no such file: {file!r}"
        if isinstance(part, WholeWords):
            try:
                stem("", part.stem)
            except MissingExtraError as error:
                yield f"{path}.stem: {error}"


def _start(recipe: Recipe) -> Iterator[str]:
    if recipe.start is not None:
        try:
            Start.find(recipe.start)
        except ArtifactError as error:
            yield f"start: {error}"


def _measures(recipe: Recipe) -> Iterator[str]:
    for name in recipe.measures:
        try:
            parse_measure(name)
        except ConfigError as error:
            yield from (f"measures: {fault}" for fault in error.faults)


# -- one stage -----------------------------------------------------------------------------------------


def _train(recipe: Recipe, stage: Train) -> Iterator[str]:
    if stage.teacher is not None and not any("teacher" in loss.needs for loss in stage.losses):
        yield "teacher: no loss of this stage uses it; omit it"
    if stage.mask_matches and stage.hide == "mask":
        yield from _mask(recipe)
    modules = _roots(recipe, stage)
    for field in ("learn", "freeze", "alternate", "lr_factors"):
        for pattern in getattr(stage, field):
            if not _could_match(pattern, modules):
                yield f"{field}: {pattern!r} matches no parameter; names begin with {', '.join(modules)}"
    if isinstance(stage.stop, NoImprovement) and stage.stop.measure not in recipe.measures:
        yield (
            f"stop: uses {stage.stop.measure}, which is not evaluated; the recipe's measures are "
            f"{', '.join(recipe.measures) or 'none'}"
        )
    if stage.keep == "best" and not recipe.measures:
        yield "keep='best' needs a measure, and the recipe evaluates none; name measures or use keep='last'"
    development = recipe.data.development is not None or recipe.data.held_out > 0
    if not development and (stage.keep == "best" or stage.stop is not None):
        yield (
            "keep='best' and a stop rule need development queries; name data.development, hold some out with "
            "data.held_out, or use keep='last' without a stop rule"
        )


def _mask(recipe: Recipe) -> Iterator[str]:
    """Report a vocabulary without a mask token, if it is on disk. Training checks that of a hub id."""
    model = recipe.declared_model()
    reader = model.encoder.encoder("document") if isinstance(model, Model) else model
    try:
        tokenizer = reader.backbone.tokenizer_at_hand()
    except MissingExtraError:
        return  # reported when the backbone is loaded
    except ArtifactError as error:
        yield f"mask_matches: {error}"
        return
    if tokenizer is not None and tokenizer.mask_id is None:
        yield NO_MASK


def _roots(recipe: Recipe, stage: Train) -> dict[str, nn.Module]:
    """The modules by the prefix of their parameters' names."""
    model = recipe.declared_model()
    found: dict[str, nn.Module | None] = {"objective": stage.objective}
    if isinstance(model, Model):
        found |= {"transforms": model.transforms, "scorer": stage.scorer or recipe.scorer}
        model = model.encoder
    found |= dict(model.named_children())
    return {name: module for name, module in found.items() if module is not None}


def _could_match(pattern: str, roots: Mapping[str, nn.Module]) -> bool:
    """Whether a pattern can match a parameter once the parts are set up.

    The parameters of a part are not known yet, only that their names end in `_`. The pattern is therefore
    followed through the tree of parts up to its first wildcard. `roots` are the top modules by prefix.
    """
    start = min((pattern.find(sign) for sign in "*?[" if sign in pattern), default=len(pattern))
    literal = pattern[:start]
    if "." not in literal:
        return any(name.startswith(literal) for name in roots) and literal != pattern
    first, *inner, last = literal.split(".")
    return first in roots and _follows(roots[first], inner, last)


def _follows(module: nn.Module, names: list[str], last: str) -> bool:
    """Whether a module can have a parameter under these names and one that starts with `last`."""
    children = dict(module.named_children())
    learns = isinstance(module, Part)
    if names:
        if names[0] in children:
            return _follows(children[names[0]], names[1:], last)
        return learns and names[0].endswith("_")
    return learns or any(name.startswith(last) for name in children)
