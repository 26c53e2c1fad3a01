"""Negatives of another source, without those that hold an answer."""

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
    """Negatives in whose text no answer to the query stands (Karpukhin et al. 2020, section 3.2; RoC, eq. 7).

    Documents that are judged relevant are no negatives of any source. Where few are judged, a highly ranked
    passage may answer all the same; answer strings find such. Texts are looked at when they are drawn, so let
    the source give more than are needed, and the first `count` without an answer are taken. A title counts as
    text. A query that the file has no answers of keeps all, by judgements alone.

    Args:
        source: whose negatives are filtered.
        file: answers by query id, as `counterpoint compare --answers` reads them.
        count: how many to keep; all that pass where None.

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
        """As often as the source that is filtered."""
        return self.source.every

    def prepare(self, mining: Mining) -> Draw:
        """Prepare the source, and read the answers.

        Raises:
            DataError: the file cannot be read or has answers to no query of the data, or nothing passes for
                most examples.
        """
        inner, data = self.source.prepare(mining), mining.data
        answers = read_answers(self.file)
        if not answers.keys() & data.queries.keys():
            raise DataError(
                f"has answers to {len(answers)} queries, and none of them is in the training data; were the "
                "file and the data made from one collection?",
                path=self.file,
            )

        def draw(at: int, rng: np.random.Generator) -> Sequence[str]:
            theirs = answers.get(data.examples[at].query, ())
            passing = (
                document for document in inner(at, rng) if not has_answer(data.documents[document], theirs)
            )
            return list(islice(passing, self.count))

        return checked(draw, mining, "WithoutAnswers")
