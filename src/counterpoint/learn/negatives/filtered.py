"""Negatives of another source, without those that a teacher considers relevant or that contain an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np

from counterpoint.data import read_answers
from counterpoint.errors import ConfigError, DataError
from counterpoint.learn.batches import Draw
from counterpoint.learn.examples import Example, TrainingSet
from counterpoint.learn.negatives.source import Mining, Negatives, check_count, checked
from counterpoint.learn.teachers import Teacher
from counterpoint.measure import has_answer

__all__ = ["Filtered", "WithoutAnswers"]

RELATIVE = 0.95


@dataclass(frozen=True)
class Filter(Negatives):
    """Negatives of a source that pass a test. Abstract.

    Args:
        source: the source to filter.
    """

    source: Negatives

    @property
    def every(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As for the filtered source."""
        return self.source.every


@final
@dataclass(frozen=True)
class Filtered(Filter):
    """Removes false negatives by a teacher's score, and documents with the same text as a positive.

    A document is kept if its score is at most a limit, which is one of (Moreira et al. 2024, section 3.1):

    - `relative` · positive, the default with 0.95. For negative scores this would be above the positive, so
      the limit is positive − (1 − relative) · |positive|, which is the same for scores above 0;
    - positive − `margin`;
    - `below`, independent of the positive.

    With several positives, the lowest score counts. Documents without a teacher's score are dropped. If no
    positive has a score, every document is dropped, except with `below`. Documents are scored when they are
    drawn. Let the source return more than needed, of which the first `count` that pass are taken.

    Args:
        source: the source to filter.
        teacher: scores the positives and the drawn documents. None for the scores in the data.
        count: how many to keep. None for all that pass.
        margin: see above.
        relative: see above.
        below: see above.

    Example:
        >>> from counterpoint.learn import BM25Negatives
        >>> Filtered(BM25Negatives(count=8), margin=3.0, count=1).to_dict()["margin"]
        3.0
    """

    teacher: Teacher | None = None
    count: int | None = None
    margin: float | None = None
    relative: float | None = None
    below: float | None = None

    def __post_init__(self) -> None:
        check_count(self, count=1, margin=0, relative=0)
        given = [name for name in ("margin", "relative", "below") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ConfigError(
                f"Filtered: give one of margin, relative and below, found {' and '.join(given)}"
            )
        if self.relative is not None and self.relative > 1:
            raise ConfigError(f"Filtered: relative must be at most 1, found {self.relative}")

    def prepare(self, mining: Mining) -> Draw:
        """Prepare the source, and load the teacher.

        Raises:
            DataError: nothing passes for most examples, or there is neither a teacher nor a score.
        """
        inner = self.source.prepare(mining)
        data = mining.data
        score = _scorer(data, self.teacher)

        def draw(at: int, rng: np.random.Generator) -> Sequence[str]:
            example = data.examples[at]
            taken = {data.documents[document] for document in example.positives}
            found = [document for document in inner(at, rng) if data.documents[document] not in taken]
            scores = score(example, [*example.positives, *found])
            known = [value for value in scores[: len(example.positives)] if not math.isnan(value)]
            limit = self._limit(min(known, default=math.nan))
            pairs = zip(found, scores[len(example.positives) :], strict=True)
            # Comparisons with NaN are false, so documents with unknown scores are dropped.
            return [document for document, value in pairs if value <= limit][: self.count]

        return checked(draw, mining, "Filtered")

    def _limit(self, positive: float) -> float:
        if self.below is not None:
            return self.below
        if self.margin is not None:
            return positive - self.margin
        relative = RELATIVE if self.relative is None else self.relative
        return positive - (1 - relative) * abs(positive)


Scores = Callable[[Example, Sequence[str]], Sequence[float]]


def _scorer(data: TrainingSet, teacher: Teacher | None) -> Scores:
    """The teacher's scores of documents, or else those of the data. Never both: they are not comparable."""
    if teacher is None:
        if not any(example.scores for example in data.examples):
            raise DataError("Filtered: the data have no scores; give a teacher")
        return lambda example, ids: [example.scores.get(document, math.nan) for document in ids]
    grader = teacher.load(data)
    return lambda example, ids: grader(example.query, ids)


@final
@dataclass(frozen=True)
class WithoutAnswers(Filter):
    """Negatives whose text contains no answer to the query (Karpukhin et al. 2020, section 3.2; RoC, eq. 7).

    No source returns documents that are judged relevant. Where few are judged, a highly ranked passage may
    still answer the query, and answer strings find such passages. Texts are checked when they are drawn. Let
    the source return more documents than needed, of which the first `count` without an answer are taken. A
    title counts as text. If the file has no answers to a query, all its negatives are kept.

    Args:
        source: the source to filter.
        file: answers by query id, in the format of `counterpoint compare --answers`.
        count: how many to keep. None for all that pass.

    Example:
        >>> from counterpoint.learn import BM25Negatives
        >>> WithoutAnswers(BM25Negatives(count=8), "queries.jsonl.gz", count=1).to_dict()["count"]
        1
    """

    file: str
    count: int | None = None

    def __post_init__(self) -> None:
        check_count(self, count=1)

    def prepare(self, mining: Mining) -> Draw:
        """Prepare the source, and read the answers.

        Raises:
            DataError: the file cannot be read, has answers to no query of the data, or nothing passes for
                most examples.
        """
        inner, data = self.source.prepare(mining), mining.data
        answers = read_answers(self.file)
        if not answers.keys() & data.queries.keys():
            raise DataError(
                f"has answers to {len(answers)} queries, and none of them is in the training data; check "
                "that the file and the data come from the same collection",
                path=self.file,
            )

        def draw(at: int, rng: np.random.Generator) -> Sequence[str]:
            theirs = answers.get(data.examples[at].query, ())
            passing = (
                document for document in inner(at, rng) if not has_answer(data.documents[document], theirs)
            )
            return list(islice(passing, self.count))

        return checked(draw, mining, "WithoutAnswers")
