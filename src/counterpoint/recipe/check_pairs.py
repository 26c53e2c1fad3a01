"""Faults of a cross-encoder's recipe. It scores pairs, so settings that need vectors are faults."""

from __future__ import annotations

from collections.abc import Iterator

from counterpoint.learn import Train, WatchSettings
from counterpoint.recipe.recipe import Recipe, outside_teachers, training

__all__ = ["pair_faults"]

NO_VECTORS = "needs vectors, and a cross-encoder makes none; omit it"


def pair_faults(recipe: Recipe) -> Iterator[str]:
    """Faults that are specific to a cross-encoder's recipe."""
    for field in ("scorer", "search"):
        if getattr(recipe, field) is not None:
            yield f"{field}: {NO_VECTORS}"
    for stage in recipe.stages:
        where = f"stages.{stage.name}"
        if isinstance(stage, Train):
            yield from _vector_parts(stage, where)
        else:
            yield f"{where}: {type(stage).__name__} {NO_VECTORS}"
    for stage in training(recipe):
        yield from (f"stages.{stage.name}: {fault}" for fault in _comparisons(stage))


def _vector_parts(stage: Train, where: str) -> Iterator[str]:
    """A stage's settings that need vectors. Settings inside such a setting are not listed."""
    named: list[str] = []
    for path, part in outside_teachers(stage, where):
        needs = part.needs_vectors or isinstance(getattr(part, "on", None), str)
        if needs and not path.startswith(tuple(named)):
            named.append(f"{path}.")
            yield f"{path}: {type(part).__name__} {NO_VECTORS}"
    if stage.watch != WatchSettings():
        yield f"{where}.watch: {NO_VECTORS}"


def _comparisons(stage: Train) -> Iterator[str]:
    """Losses without anything to compare, because a query has scores of its own documents only."""
    for loss in stage.losses:
        if loss.needs & {"batch", "negatives"} and not stage.negatives:
            yield f"{loss.label} compares a query's own documents; give the stage negatives"
        if "lexical" in loss.needs:
            yield f"{loss.label}: {NO_VECTORS}"
        yield from loss.faults_of_pairs()
