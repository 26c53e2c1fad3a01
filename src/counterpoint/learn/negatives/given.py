"""Negatives without a search: those of the data, and random documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from counterpoint.errors import ConfigError, DataError
from counterpoint.learn.batches import Draw
from counterpoint.learn.negatives.source import Mining, Negatives, check_count, checked, pick

__all__ = ["FromData", "RandomNegatives"]

BINS = 10  # of equal width, as in TAS-Balanced


@final
@dataclass(frozen=True)
class FromData(Negatives):
    """The negatives that the data set gives.

    `balanced` is the second half of TAS-Balanced (Hofstätter et al. 2021). It divides the range of a query's
    teacher margins into 10 bins of equal width. It draws a bin that is not empty, then a document in it, so
    that easy and hard negatives are equally frequent. For a fixed positive, bins of margins equal bins of the
    negatives' own scores, so only those are needed.

    Args:
        count: number of negatives per example.
        choose: the first ones in the data's order, random ones, or balanced by the teacher's scores.
    """

    count: int = 1
    choose: Literal["first", "random", "balanced"] = "random"

    def __post_init__(self) -> None:
        check_count(self, count=1)
        if self.choose not in ("first", "random", "balanced"):
            raise ConfigError(f"FromData: choose must be first, random or balanced, found {self.choose!r}")

    def prepare(self, mining: Mining) -> Draw:
        """Check the data. Nothing is mined.

        Raises:
            DataError: most examples have none, or with `balanced`, a negative has no teacher's score.
        """
        examples = mining.data.examples
        if self.choose == "balanced":
            for example in examples:
                bare = next((d for d in example.negatives if d not in example.scores), None)
                if bare is not None:
                    raise DataError(
                        f"FromData: negative {bare!r} of query {example.query!r} has no teacher's score, "
                        "which choose='balanced' needs; choose 'random'"
                    )

        def draw(at: int, rng: np.random.Generator) -> Sequence[str]:
            example = examples[at]
            relevant = mining.data.relevant_to(example)
            pool = [d for d in dict.fromkeys(example.negatives) if d not in relevant]
            if self.choose == "first":
                return pool[: self.count]
            if self.choose == "random":
                return pick(pool, self.count, rng)
            return _balanced(pool, [example.scores[d] for d in pool], self.count, rng)

        return checked(draw, mining, "FromData")


@final
@dataclass(frozen=True)
class RandomNegatives(Negatives):
    """Random documents of the training set.

    Args:
        count: number of negatives per example.
    """

    count: int = 1

    def __post_init__(self) -> None:
        check_count(self, count=1)

    def prepare(self, mining: Mining) -> Draw:
        """Prepare to draw. Nothing is mined."""
        documents = list(mining.data.documents)

        def draw(at: int, rng: np.random.Generator) -> Sequence[str]:
            relevant = mining.data.relevant_to(mining.data.examples[at])
            # Enough documents that `count` remain even if all relevant ones are among them.
            found = pick(documents, self.count + len(relevant), rng)
            return [document for document in found if document not in relevant][: self.count]

        return checked(draw, mining, "RandomNegatives")


def _balanced(
    pool: Sequence[str], scores: Sequence[float], count: int, rng: np.random.Generator
) -> list[str]:
    """Draw bins, then distinct documents in them."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    width = (high - low) / BINS or 1.0
    bins: dict[int, list[str]] = {}
    for document, score in zip(pool, scores, strict=True):
        bins.setdefault(min(int((score - low) / width), BINS - 1), []).append(document)
    found: list[str] = []
    while bins and len(found) < count:
        key = sorted(bins)[int(rng.integers(len(bins)))]
        found.append(bins[key].pop(int(rng.integers(len(bins[key])))))
        if not bins[key]:
            del bins[key]
    return found
