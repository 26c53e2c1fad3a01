"""Faults of the recipe of a model that makes vectors: names of sets, scorers, search settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from counterpoint.config import plain
from counterpoint.encode import BY_ROUTER, DualEncoder, Head, Routed
from counterpoint.errors import ConfigError
from counterpoint.learn import Fit, Loss, NegativeCache, Train
from counterpoint.learn.fit import linear_of, tokenwise_of
from counterpoint.learn.traits import SetTraits
from counterpoint.model import Model
from counterpoint.recipe.inside import losses_of, outside_teachers, training
from counterpoint.recipe.recipe import Recipe
from counterpoint.score import Dot, MaxSim
from counterpoint.search import LEXICAL, SearchSettings

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
            yield from (f"{where}: {fault}" for fault in _fit(stage, model))
    yield from _idf(recipe)
    for stage in training(recipe):
        yield from (f"stages.{stage.name}: {fault}" for fault in _train(recipe, stage))
        for loss in losses_of(stage):
            found = loss.faults(_traits(encoder), stage.cache)
            yield from (f"stages.{stage.name}: {fault}" for fault in found)


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


def _fit(stage: Fit, model: Model) -> Iterator[str]:
    if stage.what == "transforms" and stage.on not in model.transforms:
        yield f"fits the transforms of {stage.on!r}, and the model has none on that set"
    if stage.what == "tokenwise" and not getattr(tokenwise_of(model.encoder, stage.on), "tokenwise", ()):
        yield (
            f"fits the tokenwise maps of {stage.on!r}, which needs one encoder for both sides and a head "
            "Mean(tokenwise=[...])"
        )
    if stage.what == "projection" and linear_of(model.encoder, stage.on) is None:
        yield (
            f"fits the projection of {stage.on!r}, which needs one encoder for both sides and a head with "
            "projection=Linear(...) alone, without activation or residual"
        )


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


def _train(recipe: Recipe, stage: Train) -> Iterator[str]:
    if stage.scorer is None and recipe.scorer is None:
        yield "no scorer; give the stage one, or the recipe one for all stages"
    for loss in losses_of(stage):
        if "batch" in loss.needs and stage.batch < 2:
            yield f"{loss.label} needs other queries in the batch; batch is {stage.batch}, use 2 or more"
        # A teacher has no scores of drawn negatives.
        drawn = stage.cache is not None and "teacher" not in loss.needs
        if "negatives" in loss.needs and not stage.negatives and not drawn:
            yield f"{loss.label} compares a query's own documents; give the stage negatives"
        if "cache" in loss.needs and stage.cache is None:
            yield f"{loss.label} draws from a negative cache; give the stage cache=NegativeCache(...)"
        if "lexical" in loss.needs and stage.lexical is None:
            yield f"{loss.label} compares the model with BM25; give the stage lexical=BM25Terms()"
    if stage.lexical is not None and not any("lexical" in loss.needs for loss in losses_of(stage)):
        yield "lexical: no loss of this stage uses it; omit it"
    if stage.cache is not None:
        yield from (f"cache: {fault}" for fault in _cache(stage.cache, losses_of(stage)))


def _cache(cache: NegativeCache, losses: list[Loss]) -> Iterator[str]:
    """Cached losses read one drawn negative, losses with a teacher none, all others read all of them."""
    if all("teacher" in loss.needs for loss in losses):
        yield "no loss of this stage uses it; omit it"
        return
    reads = [loss.drawn for loss in losses if "teacher" not in loss.needs]
    most = max((count for count in reads if count is not None), default=0)
    if None not in reads and cache.draws > most:
        names = ", ".join(loss.label for loss in losses if loss.drawn is not None)
        yield f"draws is {cache.draws}, and {names} reads {most} per query; use {most}"


def _unknown_sets(path: str, names: Iterable[str], sets: list[str]) -> Iterator[str]:
    for name in names:
        if name not in sets:
            yield f"{path}: there is no vector set {name!r}; there are {', '.join(sets)}"
