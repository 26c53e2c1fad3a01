"""Negatives of another source, without those that a teacher takes for relevant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from counterpoint.errors import ConfigError, DataError
from counterpoint.learn.batches import Draw
from counterpoint.learn.examples import Example, TrainingSet
from counterpoint.learn.negatives.source import Mining, Negatives, check_count, checked
from counterpoint.learn.teachers import Teacher

__all__ = ["Filtered"]

RELATIVE = 0.95


@final
@dataclass(frozen=True)
class Filtered(Negatives):
    """False negatives removed by a teacher's score, and by text: a document with a positive's text is none.

    A document is kept where its score is at most a limit, one of (Moreira et al. 2024, section 3.1):

    - `relative` · positive, 0.95 unless anything is given. Below 0 that would lie above the positive, so the
      limit is positive − (1 − relative) · |positive|, which is the same above 0;
    - positive − `margin`;
    - `below`, whatever the positive has.

    Of several positives the one with the lowest score counts. Scores are asked for when a document is drawn,
    so let the source give more than are needed, and the first `count` that pass are taken.

    Args:
        source: whose negatives are filtered.
        teacher: scores the positives and what is drawn; None for the scores in the data.
        count: how many to keep; all that pass where None.
        margin: see above.
        relative: see above.
        below: see above.

    Example:
        >>> from counterpoint.learn import BM25Negatives
        >>> Filtered(BM25Negatives(count=8), margin=3.0, count=1).to_dict()["margin"]
        3.0
    """

    source: Negatives
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

    @property
    def every(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As often as the source that is filtered."""
        return self.source.every

    def prepare(self, mining: Mining) -> Draw:
        """Prepare the source, and load the teacher.

        Raises:
            DataError: nothing passes for most examples, or the data have no score of a document.
        """
        inner = self.source.prepare(mining)
        data = mining.data
        score = _scorer(data, self.teacher)

        def draw(at: int, rng: np.random.Generator) -> Sequence[str]:
            example = data.examples[at]
            taken = {data.documents[document] for document in example.positives}
            found = [document for document in inner(at, rng) if data.documents[document] not in taken]
            limit = self._limit(min(score(example, example.positives)))
            scores = score(example, found)
            kept = [document for document, value in zip(found, scores, strict=True) if value <= limit]
            return kept[: self.count]

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
    """A teacher's scores of documents; never of two kinds, since they would not be comparable."""
    if teacher is None:
        return _given_scores
    grader = teacher.load(data.documents)

    def graded(example: Example, documents: Sequence[str]) -> Sequence[float]:
        if not documents:
            return []
        return grader(data.queries[example.query], [data.documents[document] for document in documents])

    return graded


def _given_scores(example: Example, documents: Sequence[str]) -> Sequence[float]:
    bare = next((document for document in documents if document not in example.scores), None)
    if bare is not None:
        raise DataError(
            f"Filtered: the data have no score of document {bare!r} for query {example.query!r}; "
            "give a teacher"
        )
    return [example.scores[document] for document in documents]
