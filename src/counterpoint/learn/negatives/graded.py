"""Lists of a query's documents drawn once and for all, and a teacher's scores of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from counterpoint.learn.batches import Draw
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.teachers import Grader

__all__ = ["drawn_lists", "graded_lists"]

TOGETHER = 64  # lists whose texts a grader is told of at a time


def drawn_lists(
    data: TrainingSet, draw: Draw, rng: np.random.Generator
) -> Iterator[tuple[str, Sequence[str]]]:
    """A query, a positive and negatives drawn for it, by ids: one list for each positive."""
    for at, example in enumerate(data.examples):
        for positive in example.positives:
            yield example.query, [positive, *draw(at, rng)]


def graded_lists(
    lists: Sequence[tuple[str, Sequence[str]]],
    grader: Grader,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Iterator[tuple[str, Sequence[tuple[str, float]]]]:
    """The same lists with a teacher's score of every document.

    A document that the teacher does not know is left out, and with a positive its whole list.

    Args:
        lists: queries, each with its positive and negatives.
        grader: the teacher, loaded.
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
