"""`Teacher`: which scores of query and document are learnt from; `Grader`: a teacher that is ready."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import torch

from counterpoint.config import Setting
from counterpoint.learn.batches import Batch
from counterpoint.learn.examples import TrainingSet

__all__ = ["Grader", "Teacher", "taught"]


class Grader(ABC):
    """A teacher that is loaded and ready."""

    @abstractmethod
    def __call__(self, query: str, documents: Sequence[str]) -> list[float]:
        """Scores of documents for a query, all named by their ids; higher is better, NaN is unknown."""

    def prepare(self, asked: Sequence[tuple[str, Sequence[str]]]) -> None:  # noqa: B027 - may do nothing
        """Told what it will be asked next, a grader can read texts together; changes no score.

        Args:
            asked: queries with their documents, by ids.
        """


class Teacher(Setting, ABC):
    """Which scores teach."""

    @abstractmethod
    def load(self, data: TrainingSet) -> Grader:
        """Load what is needed to grade the queries and documents of these data."""


def taught(batch: Batch, grader: Grader) -> Batch:
    """The batch with a teacher's scores where its data do not score all of a query's own documents.

    Such a query is graded anew as a whole, since scores of two sources cannot be subtracted.
    """
    own, scores = batch.targets.own, batch.targets.teacher
    scores = torch.full(own.shape, math.nan) if scores is None else scores.clone()
    unknown = []
    for row, (query, columns) in enumerate(zip(batch.query_ids, own.tolist(), strict=True)):
        there = [at for at, column in enumerate(columns) if column >= 0]
        if scores[row, there].isnan().any():
            unknown.append((row, there, query, [batch.document_ids[columns[at]] for at in there]))
    grader.prepare([(query, documents) for _, _, query, documents in unknown])
    for row, there, query, documents in unknown:
        scores[row, there] = scores.new_tensor(grader(query, documents))
    return replace(batch, targets=replace(batch.targets, teacher=scores))
