"""What is wrong with a recipe of a model that makes vectors: names of sets, scorers, search settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from counterpoint.config import plain
from counterpoint.encode import BY_ROUTER, DualEncoder, Head, Routed
from counterpoint.errors import ConfigError
from counterpoint.learn import (
    CachedContrastive,
    Fit,
    GateSparsity,
    Loss,
    NegativeCache,
    Orthogonality,
    RouterBalance,
    RouterSparsity,
    TermSparsity,
    Train,
)
from counterpoint.learn.fit import linear_of, tokenwise_of
from counterpoint.model import Model
from counterpoint.recipe.inside import losses_of, outside_teachers, training
from counterpoint.recipe.recipe import Recipe
from counterpoint.score import Dot, MaxSim
from counterpoint.search import LEXICAL, SearchSettings

__all__ = ["vector_faults"]


def vector_faults(recipe: Recipe, model: Model) -> Iterator[str]:
    """Faults that only the recipe of a model with vectors has."""
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
            yield from (f"stages.{stage.name}: {fault}" for fault in _weighed(loss, encoder))


def _weighed(loss: Loss, encoder: DualEncoder) -> Iterator[str]:
    """Losses on a gate or a router that is not there, or on a set of another kind."""
    heads = encoder.query.heads
    if isinstance(loss, GateSparsity) and loss.on in heads and loss.on not in encoder.gates:
        yield (
            f"{loss.label} closes the gate of {loss.on!r}, and the model has none there; give it "
            f"DualEncoder(..., gates={{{loss.on!r}: Gate()}})"
        )
    routed = [name for name, head in heads.items() if isinstance(head, Routed)]
    if isinstance(loss, RouterBalance | RouterSparsity) and loss.on in heads and loss.on not in routed:
        yield f"{loss.label} goes by the router of {loss.on!r}, which has none; make it Routed(Router())"
    pooled = [name for name, head in heads.items() if cast(Head, head).pooled]
    if isinstance(loss, Orthogonality) and loss.on in heads and loss.on not in pooled:
        yield f"{loss.label} takes one vector a text, and {loss.on!r} has many; name a pooled set"
    without_ids = [*pooled, *(name + BY_ROUTER for name in routed)]
    if isinstance(loss, TermSparsity) and loss.norm == "flops" and loss.on in without_ids:
        yield (
            f"{loss.label}: 'flops' goes by terms, and the rows of {loss.on!r} have no ids; name a set of "
            "terms, or take norm='l1'"
        )


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
    """Arguments called `on`, each of which names a vector set; a loss may name a router's whole vector."""
    heads = encoder.query.heads
    routers = [name + BY_ROUTER for name, head in heads.items() if isinstance(head, Routed)]
    for path, part in outside_teachers(value, where):
        on = getattr(part, "on", None)
        if not isinstance(on, str):
            continue
        if on not in routers or not path.startswith(f"{where}.objective"):
            yield from _unknown_sets(path, [on], list(heads))
        if isinstance(part, Dot) and on in heads and not cast(Head, heads[on]).pooled:
            yield f"{path}: Dot takes one vector a text, and {on!r} has many; pool it or use MaxSim"


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
    """Scorers that weigh by idf before a stage has counted it."""
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
                f"stages.{stage.name}: MaxSim({on}) weighs by idf, which no stage before has counted; put "
                f'Fit({on!r}, what="idf") before it'
            )


def _train(recipe: Recipe, stage: Train) -> Iterator[str]:
    if stage.scorer is None and recipe.scorer is None:
        yield "no scorer; give the stage one, or the recipe one for all stages"
    for loss in losses_of(stage):
        if "batch" in loss.needs and stage.batch < 2:
            yield f"{loss.label} needs other queries in the batch; batch is {stage.batch}, take 2 or more"
        drawn = stage.cache is not None and "teacher" not in loss.needs  # no teacher knows what is drawn
        if "negatives" in loss.needs and not stage.negatives and not drawn:
            yield f"{loss.label} compares a query's own documents; give the stage negatives"
        if "cache" in loss.needs and stage.cache is None:
            yield f"{loss.label} draws from a negative cache; give the stage cache=NegativeCache(...)"
        if "lexical" in loss.needs and stage.lexical is None:
            yield f"{loss.label} compares the model with BM25; give the stage lexical=BM25Terms()"
    if stage.lexical is not None and not any("lexical" in loss.needs for loss in losses_of(stage)):
        yield "lexical: no loss of this stage uses it; leave it out"
    if stage.cache is not None:
        yield from (f"cache: {fault}" for fault in _cache(stage.cache, losses_of(stage)))


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


def _unknown_sets(path: str, names: Iterable[str], sets: list[str]) -> Iterator[str]:
    for name in names:
        if name not in sets:
            yield f"{path}: there is no vector set {name!r}; there are {', '.join(sets)}"
