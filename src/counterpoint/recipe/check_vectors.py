"""Faults of the recipe of a model that makes vectors: names of sets, scorers, search settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, cast

from counterpoint.config import plain
from counterpoint.encode import BY_ROUTER, DualEncoder, Head, Layer, Routed
from counterpoint.errors import ConfigError, CounterpointError
from counterpoint.learn import Fit, Train
from counterpoint.learn.fit import fit_faults
from counterpoint.learn.loss import SetTraits
from counterpoint.model import Model
from counterpoint.recipe.recipe import Recipe, outside_teachers, training
from counterpoint.score import Dot, MaxSim
from counterpoint.search import LEXICAL, SearchSettings
from counterpoint.transform.transform import FittedTransform, Transform

__all__ = ["vector_faults"]


def vector_faults(recipe: Recipe, model: Model) -> Iterator[str]:
    """Faults that are specific to the recipe of a model with vectors."""
    encoder = model.encoder
    ours, theirs = list(encoder.query.heads), list(encoder.encoder("document").heads)
    if sorted(ours) != sorted(theirs):
        yield f"model: queries become {', '.join(ours)}, documents {', '.join(theirs)}; they must be equal"
    yield from _unknown_sets("model.transforms", model.transforms, ours)
    yield from _unknown_sets("model.shared", encoder.shared, ours)
    yield from _unknown_sets("model.gates", encoder.gates, ours)
    yield from _search(plain(model.search or {}), ours)
    yield from _vector_sets(encoder, recipe.scorer, "scorer")
    for stage in recipe.stages:
        where = f"stages.{stage.name}"
        yield from _vector_sets(encoder, stage, where)
        if isinstance(stage, Fit) and stage.on in ours:
            yield from (f"{where}: {fault}" for fault in fit_faults(stage, model))
    yield from _unfitted(recipe, model)
    yield from _sizes(model)
    yield from _idf(recipe)
    for stage in training(recipe):
        yield from (f"stages.{stage.name}: {fault}" for fault in _train(recipe, stage, _traits(encoder)))


def _traits(encoder: DualEncoder) -> dict[str, SetTraits]:
    """Traits of the vector sets of a declared model, including what its routers produce for losses."""
    heads = {name: cast(Head, head) for name, head in encoder.query.heads.items()}
    routed = [name for name, head in heads.items() if isinstance(head, Routed)]
    sets = {
        name: SetTraits(head.pooled, not head.pooled, name in encoder.gates, name in routed)
        for name, head in heads.items()
    }
    return sets | {name + BY_ROUTER: SetTraits(pooled=True, ids=False) for name in routed}


def _search(said: Mapping[str, Any], sets: list[str]) -> Iterator[str]:
    try:
        SearchSettings.from_dict(said)
    except ConfigError as error:
        yield from error.faults
        return
    for name in ("weights", "idf", "exact", "floor"):
        known = [LEXICAL, *sets] if name == "weights" else sets
        yield from _unknown_sets(f"search.{name}", said.get(name, ()), known)


def _vector_sets(encoder: DualEncoder, value: Any, where: str) -> Iterator[str]:
    """Unknown sets in arguments called `on`. A loss may also name a router's full vector."""
    heads = encoder.query.heads
    routers = [name + BY_ROUTER for name, head in heads.items() if isinstance(head, Routed)]
    for path, part in outside_teachers(value, where):
        on = getattr(part, "on", None)
        if not isinstance(on, str):
            continue
        if on not in routers or not path.startswith(f"{where}.objective"):
            yield from _unknown_sets(path, [on], list(heads))
        if isinstance(part, Dot) and on in heads and not cast(Head, heads[on]).pooled:
            yield f"{path}: Dot takes one vector per text, and {on!r} has several; pool it or use MaxSim"


def _unfitted(recipe: Recipe, model: Model) -> Iterator[str]:
    """Transforms that learn and that no stage fits. A model to start from may have fitted them."""
    fitted = {stage.on for stage in recipe.stages if isinstance(stage, Fit) and stage.what == "transforms"}
    for on, chain in model.transforms.items() if recipe.start is None else ():
        learning = [type(each).__name__ for each in chain.children() if isinstance(each, FittedTransform)]
        if learning and on not in fitted:
            yield f"model.transforms.{on}: no stage fits {', '.join(learning)}; add Fit({on!r}) to the stages"


def _sizes(model: Model) -> Iterator[str]:
    """Transforms of vectors that are longer or shorter than the set's, where the set's length is known."""
    heads = model.encoder.query.heads
    for on, chain in model.transforms.items():
        dim = _size(model.encoder, on) if on in heads else None
        for each in cast(Iterable[Transform], chain.children()):
            if dim is None:
                break
            if isinstance(each, FittedTransform) and each.dim != dim:
                name = type(each).__name__
                yield f"model.transforms.{on}: {name} takes {each.dim} components, and the vectors have {dim}"
                break
            dim = each.out_dim(dim)


def _size(encoder: DualEncoder, on: str) -> int | None:
    """The number of components of a declared set; None if it depends on a backbone that is not on disk."""
    head = cast(Head, deepcopy(encoder.query.heads[on]))
    layer = cast(Layer, deepcopy(encoder.shared[on])) if on in encoder.shared else None
    try:
        if head.in_dim is None and not head.static:
            head.in_dim = encoder.query.backbone_of(on).dim_at_hand()
        if head.projection is not None and head.in_dim is not None:
            head.projection.fill(head.in_dim)
        if layer is not None:
            layer.fill(head.dim)
        return head.dim if layer is None else layer.out_dim
    except CounterpointError:
        return None  # what is wrong is reported when the backbone is loaded


def _idf(recipe: Recipe) -> Iterator[str]:
    """Scorers that weight by idf before a stage has counted it."""
    counted: set[str] = set()
    for stage in recipe.stages:
        if isinstance(stage, Fit) and stage.what == "idf":
            counted.add(stage.on)
        if not isinstance(stage, Train):
            continue
        scorer = recipe.scorer if stage.scorer is None else None
        parts = [part for _, part in (*outside_teachers(stage, ""), *outside_teachers(scorer, ""))]
        sets = sorted({part.on for part in parts if isinstance(part, MaxSim) and part.idf})
        for on in (on for on in sets if on not in counted):
            yield (
                f"stages.{stage.name}: MaxSim({on}) weights by idf, which no earlier stage has counted; put "
                f'Fit({on!r}, what="idf") before it'
            )


def _train(recipe: Recipe, stage: Train, sets: Mapping[str, SetTraits]) -> Iterator[str]:
    if stage.scorer is None and recipe.scorer is None:
        yield "no scorer; give the stage one, or the recipe one for all stages"
    yield from stage.faults()
    for loss in stage.losses:
        if getattr(loss, "on", None) in (None, *sets):  # else `_vector_sets` says that there is no such set
            yield from loss.faults(sets, stage.cache)


def _unknown_sets(path: str, names: Iterable[str], sets: list[str]) -> Iterator[str]:
    for name in names:
        if name not in sets:
            yield f"{path}: there is no vector set {name!r}; there are {', '.join(sets)}"
