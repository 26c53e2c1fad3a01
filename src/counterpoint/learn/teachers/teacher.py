"""`Teacher`: declares where scores to learn from come from. `Grader`: a loaded teacher."""

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
    """A loaded teacher, ready to score."""

    @abstractmethod
    def __call__(self, query: str, documents: Sequence[str]) -> list[float]:
        """Scores of documents for a query, by their ids. Higher is better, NaN is unknown."""

    def prepare(self, asked: Sequence[tuple[str, Sequence[str]]]) -> None:  # noqa: B027 - may do nothing
        """Announce the next calls, so that a grader can process texts together. Scores do not change.

        Args:
            asked: queries with their documents, by ids.
        """


class Teacher(Setting, ABC):
    """A source of scores to learn from. Abstract."""

    @abstractmethod
    def load(self, data: TrainingSet) -> Grader:
        """Load everything that is needed to grade the queries and documents of these data."""


def taught(batch: Batch, grader: Grader) -> Batch:
    """Add a teacher's scores for each query whose own documents are not all scored by the data.

    All documents of such a query are graded again, because scores of two sources cannot be compared.
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
