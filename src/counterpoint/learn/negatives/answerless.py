"""Negatives of another source, without those that contain an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np

from counterpoint.data import read_answers
from counterpoint.errors import DataError
from counterpoint.learn.batches import Draw
from counterpoint.learn.negatives.source import Mining, Negatives, check_count, checked
from counterpoint.measure import has_answer

__all__ = ["WithoutAnswers"]


@final
@dataclass(frozen=True)
class WithoutAnswers(Negatives):
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

    source: Negatives
    file: str
    count: int | None = None

    def __post_init__(self) -> None:
        check_count(self, count=1)

    @property
    def every(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As for the filtered source."""
        return self.source.every

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
