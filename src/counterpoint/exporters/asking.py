"""A query as an engine's own request."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from counterpoint.errors import ConfigError
from counterpoint.exporters.contents import Contents
from counterpoint.exporters.engine import Engine, Part, Question
from counterpoint.exporters.names import engine_of
from counterpoint.exporters.writing import collection_name
from counterpoint.library.opened import OpenIndex
from counterpoint.library.options import SearchOptions
from counterpoint.search import LEXICAL, Searcher
from counterpoint.search.prepared import prepare
from counterpoint.search.settings import plan_for

if TYPE_CHECKING:
    from counterpoint.search import Workflow

__all__ = ["query_for"]


def query_for(
    notes: OpenIndex,
    engine: str,
    text: str,
    k: int = 10,
    *,
    workflow: str = "hybrid",
    name: str | None = None,
) -> dict[str, Any]:
    """The request that asks an engine what `notes.search(text, k)` asks the index.

    The query is encoded by the model of the index, and its vectors are weighted by idf if the index does
    that. Each part counts with its weight divided by its ceiling. Parts that the engine does not hold are
    left out.

    Args:
        notes: the index that was exported.
        engine: one of `counterpoint.exporters.ENGINES`.
        text: the query.
        k: number of documents.
        workflow: as for `notes.search`.
        name: of the collection; None for the name of the index.

    Returns:
        Plain data, which `docs/exporters.md` describes for each engine. It needs no client.

    Raises:
        ConfigError: the query is empty, or the index or the engine does not support the workflow.
        ArtifactError: the model is missing.
    """
    if not isinstance(notes, OpenIndex):
        raise ConfigError("query_for needs an index that is open here, since it encodes the query")
    if not text.strip():
        raise ConfigError("the query is empty; give some text to search for")
    if k < 1:
        raise ConfigError(f"k must be a whole number from 1 up, found {k}")
    found = engine_of(engine)
    contents = Contents.of(
        notes.index, name or collection_name(notes.index.folder), several=found.multi_vectors
    )
    searcher = notes.searcher(SearchOptions(workflow=workflow, adapt=False))
    return found.request(contents, _question(searcher, found, contents, text, k, cast("Workflow", workflow)))


def _question(
    searcher: Searcher, engine: Engine, contents: Contents, text: str, k: int, workflow: Workflow
) -> Question:
    index, settings = searcher.index, searcher.settings
    plan = plan_for(workflow, index, settings)
    held = {*contents.pooled, *contents.several, *([LEXICAL] if contents.lexical else [])}
    names = [name for name in plan.weights if name in held]
    if not names:
        raise ConfigError(
            f"workflow {workflow}: {engine.title} holds none of its parts ({', '.join(plan.weights)})"
        )
    (prepared,) = prepare([text], plan, settings, index, searcher.model)
    terms = {} if index.lexical is None else index.lexical.query_weights(text)
    rows = {name: prepared.vectors.get(name, np.zeros((0, 0), np.float32)) for name in names}
    asking = [name for name in names if len(terms if name == LEXICAL else rows[name])]
    if not asking:
        raise ConfigError(f"workflow {workflow}: the index knows no word of the query {text!r}")
    first = [name for name in plan.first if name in asking] or asking
    parts = {
        name: Part(plan.weights[name] / prepared.ceilings[name], name in first, rows[name]) for name in asking
    }
    counts = Counter() if index.lexical is None else Counter(index.lexical.terms(text))
    known = {term: counts[term] for term in terms}
    return Question(text, k, max(k, settings.candidates), parts, terms, known)
