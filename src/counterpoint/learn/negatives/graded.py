"""Fixed lists of a query's documents, and a teacher's scores of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from counterpoint.learn.batches import Draw
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.teachers import Grader

__all__ = ["drawn_lists", "graded_lists"]

TOGETHER = 64  # lists announced to a grader at a time


def drawn_lists(
    data: TrainingSet, draw: Draw, rng: np.random.Generator
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield one list per positive: the query's id, and the ids of the positive and the drawn negatives."""
    for at, example in enumerate(data.examples):
        for positive in example.positives:
            yield example.query, [positive, *draw(at, rng)]


def graded_lists(
    lists: Sequence[tuple[str, Sequence[str]]],
    grader: Grader,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Iterator[tuple[str, Sequence[tuple[str, float]]]]:
    """Add a teacher's score to every document of the lists.

    A document without a score is left out. If the positive has none, the whole list is left out.

    Args:
        lists: queries, each with its positive and negatives.
        grader: the loaded teacher.
        on_progress: called with the number of lists done.
    """
    for start in range(0, len(lists), TOGETHER):
        some = lists[start : start + TOGETHER]
        grader.prepare(some)
        for query, ids in some:
            scored = list(zip(ids, grader(query, ids), strict=True))
            if not math.isnan(scored[0][1]):
                yield query, [(document, score) for document, score in scored if not math.isnan(score)]
        on_progress(start + len(some))
