"""What is wrong with a recipe of a cross-encoder: it scores pairs, and whatever needs vectors has none."""

from __future__ import annotations

from collections.abc import Iterator

from counterpoint.config import Declared
from counterpoint.learn import (
    AlignmentStop,
    BM25Terms,
    CachedContrastive,
    Contrastive,
    ModelNegatives,
    NegativeCache,
    Train,
    WatchSettings,
)
from counterpoint.recipe.inside import losses_of, outside_teachers, training
from counterpoint.recipe.recipe import Recipe
from counterpoint.score import Scorer

__all__ = ["pair_faults"]


NO_VECTORS = "goes by vectors, and a cross-encoder makes none; leave it out"


def pair_faults(recipe: Recipe) -> Iterator[str]:
    """Faults that only a cross-encoder's recipe has."""
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
    """What a stage declares that goes by the model's vectors; what is inside of such a part is not named."""
    named: list[str] = []
    for path, part in outside_teachers(stage, where):
        if not path.startswith(tuple(named)) and _needs_vectors(part):
            named.append(f"{path}.")
            yield f"{path}: {type(part).__name__} {NO_VECTORS}"
    if stage.watch != WatchSettings():
        yield f"{where}.watch: {NO_VECTORS}"


def _needs_vectors(part: Declared) -> bool:
    """Parts that are known to, and all that name a vector set."""
    known = Scorer | NegativeCache | BM25Terms | CachedContrastive | AlignmentStop | ModelNegatives
    return isinstance(part, known) or isinstance(getattr(part, "on", None), str)


def _comparisons(stage: Train) -> Iterator[str]:
    """Losses that would find nothing to compare: a query has scores of its own documents only."""
    for loss in losses_of(stage):
        if loss.needs & {"batch", "negatives"} and not stage.negatives:
            yield f"{loss.label} compares a query's own documents; give the stage negatives"
        if "lexical" in loss.needs:
            yield f"{loss.label}: {NO_VECTORS}"
        if isinstance(loss, Contrastive) and loss.symmetric:
            yield (
                f"{loss.label}: symmetric compares a document's scores for several queries, and a "
                "cross-encoder scores a query's own documents only; leave it out"
            )
