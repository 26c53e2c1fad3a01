"""`DevelopmentSet`: queries that are not trained on, and real retrieval over documents to evaluate with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from counterpoint.errors import DataError
from counterpoint.index import Index, build_index
from counterpoint.measure import evaluate
from counterpoint.model import Model
from counterpoint.search import Searcher
from counterpoint.types import Document, Qrels

__all__ = ["DevelopmentSet", "retrieve"]


@dataclass(frozen=True)
class DevelopmentSet:
    """What a stage is evaluated on.

    Attributes:
        queries: id to text.
        documents: id to text; everything that is searched.
        qrels: judgements of the queries.

    Raises:
        DataError: nothing is judged, or a judged query has no text.
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
    """Index the documents with the model as it is, search the queries by its own settings, and measure.

    The index keeps float32 vectors, no BM25, and is gone afterwards. The model stays as it was.

    Args:
        model: what is evaluated; its parts other than BM25 are.
        development: what it is evaluated on.
        measures: by their usual names.
        depth: documents retrieved for each query.
        on_progress: called with the number of documents done.
    """
    training = model.training
    model.eval()
    try:
        with tempfile.TemporaryDirectory(prefix="counterpoint-") as folder:
            settings = model.index_settings(lexical=None, codec="float32")
            documents = (Document(name, text) for name, text in development.documents.items())
            build_index(documents, model, Path(folder) / "index", settings, on_progress=on_progress)
            queries = {name: development.queries[name] for name in development.qrels}
            with Index(Path(folder) / "index") as index:
                run = Searcher(index, model).run(queries, depth)
    finally:
        model.train(training)
    return dict(evaluate(run, development.qrels, measures).measures)
