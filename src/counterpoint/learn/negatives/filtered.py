"""Negatives of another source, without those that a teacher takes for relevant."""

from __future__ import annotations

import math
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

    Of several positives the one with the lowest score counts. A document that the teacher does not know is
    dropped, and so is every document where it knows no positive, unless `below` needs none. Scores are asked
    for when a document is drawn, so let the source give more than are needed, and the first `count` that pass
    are taken.

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
            # Nothing is at most NaN, and NaN is at most nothing: what is unknown is dropped.
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
    """A teacher's scores of documents, or else those of the data: never both, which could not be compared.

    Raises:
        DataError: there are neither.
    """
    if teacher is None:
        if not any(example.scores for example in data.examples):
            raise DataError("Filtered: the data have no scores; give a teacher")
        return lambda example, ids: [example.scores.get(document, math.nan) for document in ids]
    grader = teacher.load(data)
    return lambda example, ids: grader(example.query, ids)
