"""What is lost on the way from an index to an engine, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from counterpoint.exporters.contents import Contents
from counterpoint.exporters.engine import Engine
from counterpoint.index import Index
from counterpoint.search import SearchSettings

__all__ = ["limits_of"]


def limits_of(index: Index, engine: Engine, contents: Contents) -> list[str]:
    """What an engine does not hold of an index, or does otherwise, one sentence each."""
    return [*_sets(index, engine, contents), *_search(index, contents), *engine.limits(contents)]


def _sets(index: Index, engine: Engine, contents: Contents) -> Iterator[str]:
    for name, layout in index.layouts.items():
        if layout.kind == "static":
            yield f"{name}: a static set, whose vectors are in the model, is left out"
        elif name not in contents.pooled and name not in contents.several:
            yield f"{name}: a multi-vector set is left out; this export to {engine.title} has no MaxSim"
        elif layout.codec != "float32":
            yield f"{name}: stored here as {layout.codec}, written as the float32 vectors that it decodes to"
    if index.manifest.settings.get("gate") is not None:
        yield (
            "gate: rows that the model's gate dropped stay dropped; documents from elsewhere are not pruned"
        )
    if pooled := [name for name, layout in index.layouts.items() if layout.pool > 1]:
        yield f"{', '.join(pooled)}: documents have fewer vectors by token pooling; others are not pooled"
    if index.manifest.model is not None:
        yield "model: it stays here; query_for encodes queries with it"


def _search(index: Index, contents: Contents) -> Iterator[str]:
    settings = SearchSettings.for_index(index)
    kept = {*contents.pooled, *contents.several}
    if weighted := [name for name in settings.idf if name in kept and settings.idf[name]]:
        yield (
            f"idf weighting of {', '.join(weighted)}: query_for multiplies the query's vectors; "
            "other queries are not weighted"
        )
    for name in settings.exact:
        if name in kept:
            yield f"{name}: rows match by their vectors only; exact matching by id is not held"
    for name in settings.floor:
        if name in kept and name not in settings.exact:
            yield f"{name}: negative best similarities count; here they are raised to 0"
    if settings.follows_query:
        yield "adaptive weights: each query uses the fixed weights of the index"
    if settings.feedback:
        yield "pseudo-relevance feedback is not held"
    if not settings.adapts:
        yield "fusion: query_for adds weighted scores; this index normalises or fuses them otherwise"
