"""`DevelopmentSet`: held-out queries, and the retrieval that evaluates a model on them.

A model that makes vectors searches all documents. A cross-encoder reranks BM25's results.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from counterpoint.encode import EncodeOptions, InteractiveEncoder
from counterpoint.errors import DataError
from counterpoint.index import Index, IndexSettings, TextModel, build_index
from counterpoint.measure import evaluate
from counterpoint.model import Model
from counterpoint.search import LEXICAL, Run, Searcher, Workflow
from counterpoint.types import Document, Qrels

__all__ = ["DevelopmentSet", "first_stage", "rerank", "retrieve"]


@dataclass(frozen=True)
class DevelopmentSet:
    """The queries, documents and judgements that a stage is evaluated on.

    Attributes:
        queries: id to text.
        documents: id to text. All of them are searched.
        qrels: judgements of the queries.

    Raises:
        DataError: no judged query, no document, or a judged query without a text.
    """

    queries: Mapping[str, str]
    documents: Mapping[str, str]
    qrels: Qrels

    def __post_init__(self) -> None:
        judged = [query for query, grades in self.qrels.items() if grades]
        if not judged or not self.documents:
            raise DataError("a development set needs documents and judged queries")
        missing = [query for query in judged if query not in self.queries]
        if missing:
            raise DataError(f"{len(missing)} judged queries have no text, such as {missing[0]!r}")


def retrieve(
    model: Model,
    development: DevelopmentSet,
    measures: Sequence[str],
    *,
    depth: int = 100,
    on_progress: Callable[[int], None] = lambda done: None,
) -> dict[str, float]:
    """Index the documents with the current model, search with the model's own settings, and evaluate.

    The index is temporary. It keeps float32 vectors and no BM25 postings. The model is unchanged.

    Args:
        model: the model to evaluate, without BM25.
        development: the set to evaluate on.
        measures: their usual names.
        depth: documents retrieved per query.
        on_progress: called with the number of documents done.
    """
    training = model.training
    model.eval()
    try:
        settings = model.index_settings(lexical=None, codec="float32")
        run = _search(model, settings, development, "hybrid", depth, on_progress)
    finally:
        model.train(training)
    return dict(evaluate(run, development.qrels, measures).measures)


def first_stage(
    development: DevelopmentSet, depth: int, *, on_progress: Callable[[int], None] = lambda done: None
) -> Run:
    """Retrieve BM25's best documents for the judged queries.

    Args:
        development: the set to search.
        depth: documents retrieved per query.
        on_progress: called with the number of documents indexed.
    """
    return _search(None, IndexSettings(), development, LEXICAL, depth, on_progress)


def rerank(
    judge: InteractiveEncoder,
    development: DevelopmentSet,
    first: Run,
    measures: Sequence[str],
    *,
    device: torch.device | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> dict[str, float]:
    """Rerank a first stage's documents with a cross-encoder, and evaluate.

    The first stage's recall bounds every measure. The model is unchanged.

    Args:
        judge: the cross-encoder to evaluate.
        development: the set to evaluate on.
        first: the first stage's run. All its documents are scored.
        measures: their usual names.
        device: where to compute.
        on_progress: called with the number of pairs done.
    """
    done = 0

    def progress(pairs: int) -> None:
        nonlocal done
        done += pairs
        on_progress(done)

    deepest = max((len(first[query]) for query in first), default=0)
    options = EncodeOptions(device=device, progress=progress)
    run = judge.rerank(first, development.queries, development.documents, max(1, deepest), options)
    return dict(evaluate(run, development.qrels, measures).measures)


def _search(
    model: TextModel | None,
    settings: IndexSettings,
    development: DevelopmentSet,
    workflow: Workflow,
    depth: int,
    on_progress: Callable[[int], None],
) -> Run:
    documents = (Document(name, text) for name, text in development.documents.items())
    queries = {name: development.queries[name] for name in development.qrels}
    with tempfile.TemporaryDirectory(prefix="counterpoint-") as folder:
        where = Path(folder) / "index"
        build_index(documents, model, where, settings, keep_model=False, on_progress=on_progress)
        with Index(where) as index:
            return Searcher(index, model).run(queries, depth, workflow=workflow)
