"""What the engine hands from step to step: a query ready to be scored, and its candidates' scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from counterpoint.search.fusion import Fusion

__all__ = ["PreparedQuery", "Scored", "slopes_of"]


@dataclass(frozen=True)
class PreparedQuery:
    """A query ready to be scored.

    Attributes:
        text: as it was asked.
        vectors: rows by vector set, idf applied.
        ceilings: by part, the highest score that it could reach; 1 where parts are not scaled.
        ids: of the rows of sets that match exactly, and of no others.
        floored: sets whose best similarities are raised to 0.
        idf: what the rows were multiplied by, of sets that are weighted so.
    """

    text: str
    vectors: Mapping[str, Float[np.ndarray, "m d"]]
    ceilings: Mapping[str, float]
    ids: Mapping[str, Int[np.ndarray, " m"]]
    floored: frozenset[str]
    idf: Mapping[str, Float[np.ndarray, " m"]]


@dataclass(frozen=True)
class Scored:
    """The scores of one query's candidates, and what each part contributed to them.

    Attributes:
        scores: fused.
        contributions: their rows sum to `scores`.
        names: the parts, in the order of the columns.
        slopes: by part, how much a contribution grows with the part's own score.
    """

    scores: Float[np.ndarray, " c"]
    contributions: Float[np.ndarray, "c parts"]
    names: tuple[str, ...]
    slopes: Mapping[str, float]

    def parts(self, row: int) -> dict[str, float]:
        """The contributions to one candidate's score."""
        return dict(zip(self.names, self.contributions[row].tolist(), strict=True))


def slopes_of(
    table: Float[np.ndarray, "c parts"], contributions: Float[np.ndarray, "c parts"], fusion: Fusion
) -> dict[str, float]:
    """By part, how much a contribution grows with its score: what its explanation is multiplied by.

    A weight without normalisation; with one, the slope of the straight line on which all candidates lie; 0
    where ranks were fused, since then no word has a share.
    """
    if fusion.method == "rrf":
        return dict.fromkeys(fusion.weights, 0.0)
    if fusion.normalise == "none":
        return dict(fusion.weights)
    slopes = {}
    for column, part in enumerate(fusion.weights):
        scores, values = table[:, column], contributions[:, column]
        spread = np.ptp(scores) if len(scores) else 0.0
        slopes[part] = float(np.ptp(values) / spread) if spread else 0.0
    return slopes
