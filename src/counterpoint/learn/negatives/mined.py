"""Negatives found by a search with BM25 or with the model in training, and their lists on disk."""

from __future__ import annotations

import hashlib
import json
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from counterpoint.data import ReadPolicy
from counterpoint.data.output import write_lines
from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.files import writing
from counterpoint.index import Index, IndexSettings, LexicalSettings, TextModel, build_index, remove_index
from counterpoint.index.analysis import Analyzer, AnalyzerName
from counterpoint.learn.batches import Draw
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.formats.rows import rows
from counterpoint.learn.negatives.source import Mining, Negatives, check_count, checked, pick
from counterpoint.model import Model
from counterpoint.search import Searcher, Workflow
from counterpoint.types import Document

__all__ = ["BM25Negatives", "Mined", "ModelNegatives"]

FORMAT = 1


@dataclass(frozen=True)
class Mined(Negatives):
    """Negatives among the documents that a search ranks highest. Abstract.

    Args:
        count: number of negatives per example, drawn at random.
        depth: number of documents of the ranking to draw from.
        skip: number of top documents to leave out, because they may be relevant without a judgement.
    """

    count: int = 1
    depth: int = 100
    skip: int = 0

    def __post_init__(self) -> None:
        check_count(self, count=1, depth=1, skip=0, every=1)
        if self.skip >= self.depth:
            raise ConfigError(f"{type(self).__name__}: skip {self.skip} leaves nothing of depth {self.depth}")

    @abstractmethod
    def _search(self, mining: Mining) -> dict[str, list[str]]:
        """The best `depth` documents of every query, best first."""

    def prepare(self, mining: Mining) -> Draw:
        """Read the lists of this step, or mine and store them.

        Lists of other steps are kept, so that a run can resume from an older checkpoint.

        Raises:
            DataError: there are no negatives for most examples.
            ArtifactError: stored lists are damaged, or cannot be written.
        """
        data = mining.data
        header, path = self._identity(mining)
        lists = _read_lists(path, header, data)
        if lists is None:
            lists = self._search(mining)
            _write_lists(path, header, lists)
        pools = {}
        for example in data.examples:
            relevant = data.relevant_to(example)
            pools[example.query] = [d for d in lists[example.query][self.skip :] if d not in relevant]

        def draw(at: int, rng: np.random.Generator) -> Sequence[str]:
            return pick(pools[data.examples[at].query], self.count, rng)

        return checked(draw, mining, type(self).__name__)

    def _identity(self, mining: Mining) -> tuple[dict[str, Any], Path]:
        """The header that identifies the lists, and their file."""
        named = self.to_dict(defaults=True)
        settings = {key: value for key, value in named.items() if key not in ("count", "skip", "every")}
        header = {"format": FORMAT, "source": settings, "data": mining.data.fingerprint, "step": mining.step}
        key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
        return header, mining.folder / f"{type(self).__name__.lower()}-{key}-{mining.step}.jsonl.gz"


@final
@dataclass(frozen=True)
class BM25Negatives(Mined):
    """Negatives that share words with the query, found by our BM25.

    Args:
        count: number of negatives per example, drawn at random.
        depth: number of documents of the ranking to draw from.
        skip: number of top documents to leave out.
        analyzer: how texts are split into terms. See `LexicalSettings`.
    """

    analyzer: AnalyzerName = "english"

    def __post_init__(self) -> None:
        super().__post_init__()
        Analyzer(self.analyzer)  # reports an unknown name now, not after the data are read

    def _search(self, mining: Mining) -> dict[str, list[str]]:
        settings = IndexSettings(lexical=LexicalSettings(analyzer=self.analyzer, identifiers=False))
        return ranked(mining, None, settings, "lexical", self.depth)


@final
@dataclass(frozen=True)
class ModelNegatives(Mined):
    """Negatives that the model itself ranks high (ANCE, Xiong et al. 2021).

    Args:
        count, depth, skip: as `BM25Negatives`.
        every: steps between encoding and searching all documents again. None for the stage's beginning only.
        workflow: how the model searches. By default with its vectors alone, and its own weights and feedback.
    """

    needs_vectors: ClassVar[bool] = True

    every: int | None = None
    workflow: Workflow = "hybrid"

    def _search(self, mining: Mining) -> dict[str, list[str]]:
        model = mining.model
        if model is None:
            raise ConfigError("ModelNegatives: there is no model to search with")
        if isinstance(model, Model):
            settings = model.index_settings(lexical=None)
        else:
            settings = IndexSettings(lexical=None)
        return ranked(mining, model, settings, self.workflow, self.depth)


def ranked(
    mining: Mining, model: TextModel | None, settings: IndexSettings, workflow: Workflow, depth: int
) -> dict[str, list[str]]:
    """Search the training documents with the query of every example, in a temporary index."""
    data, folder = mining.data, mining.folder / "index.partial"
    documents = (Document(id_, text) for id_, text in data.documents.items())
    queries = {example.query: data.queries[example.query] for example in data.examples}
    try:
        build_index(
            documents, model, folder, settings, overwrite=True, keep_model=False,
            on_progress=partial(mining.on_progress, "indexing"),
        )  # fmt: skip
        with Index(folder) as index:
            searching = partial(mining.on_progress, "searching")
            run = Searcher(index, model).run(queries, depth, workflow=workflow, on_progress=searching)
    finally:
        remove_index(folder)
    return {query: [document for document, _ in run[query]] for query in run}


def _write_lists(path: Path, header: Mapping[str, Any], lists: Mapping[str, Sequence[str]]) -> None:
    """Write `[query, document, …]` lines after the header, atomically."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps([query, *found], ensure_ascii=False) for query, found in lists.items())
    write_lines(path, (line for part in ([json.dumps(header)], lines) for line in part))


def _read_lists(path: Path, header: Mapping[str, Any], data: TrainingSet) -> dict[str, list[str]] | None:
    """Read the lists, one per query. None if there is no file or its header differs."""
    if not path.is_file():
        return None
    try:
        stream = rows(path, ReadPolicy())
        first = next(stream, None)
        if first is None or first.value != header:
            return None
        # Interned: one object per id, however many lists contain it.
        lists = {row.value[0]: [sys.intern(found) for found in row.value[1:]] for row in stream}
        bare = next((example.query for example in data.examples if example.query not in lists), None)
        if bare is not None:
            raise DataError(f"nothing for query {bare!r}")
        unknown = next((d for found in lists.values() for d in found if d not in data.documents), None)
        if unknown is not None:
            raise DataError(f"document {unknown!r} is not in the data")
        return lists
    except (DataError, TypeError, LookupError) as error:
        raise ArtifactError(f"damaged ({error}); remove it to mine it again", path=path) from error
