"""What the engine hands from step to step: a query ready to be scored, and its candidates' scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ConfigError
from counterpoint.index import Asked, Index, TextModel
from counterpoint.search.fusion import Fusion
from counterpoint.search.settings import LEXICAL, Plan, SearchSettings

__all__ = ["Candidates", "Feedback", "PreparedQuery", "Scored", "prepare", "slopes_of"]


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

    def asked(self, part: str) -> Any:
        """What the store of a part is asked: the text for BM25, vectors otherwise."""
        if part == LEXICAL:
            return self.text
        return Asked(self.vectors[part], self.ids.get(part), part in self.floored)


@dataclass(frozen=True)
class Candidates:
    """The candidates of one query, and what each part says of them, before anything is weighed.

    Attributes:
        positions: in the index.
        table: the exact scores, a column a part, over the part's ceiling.
        evidence: by part, what it has to go by (see `counterpoint.search.adapt`).
    """

    positions: Int[np.ndarray, " c"]
    table: Float[np.ndarray, "c parts"]
    evidence: Mapping[str, float]


@dataclass(frozen=True)
class Feedback:
    """How like each candidate is to the best ones.

    Attributes:
        scores: Σ_j w_j cos(d_j, d) for each candidate d, over the best candidates d_j; of several pooled sets
            the mean. Between −1 and 1.
        rows: which candidates are the best, by row.
        weights: w of each; they sum to 1.
    """

    scores: Float[np.ndarray, " c"]
    rows: Int[np.ndarray, " b"]
    weights: Float[np.ndarray, " b"]


@dataclass(frozen=True)
class Scored:
    """The scores of one query's candidates, and what each part contributed to them.

    Attributes:
        positions: of the candidates, in the index.
        scores: fused.
        contributions: their rows sum to `scores`.
        names: the parts, in the order of the columns.
        slopes: by part, how much a contribution grows with the part's own score.
        feedback: what the last column came from, if it is feedback's.
    """

    positions: Int[np.ndarray, " c"]
    scores: Float[np.ndarray, " c"]
    contributions: Float[np.ndarray, "c parts"]
    names: tuple[str, ...]
    slopes: Mapping[str, float]
    feedback: Feedback | None = None

    def parts(self, row: int) -> dict[str, float]:
        """The contributions to one candidate's score."""
        return dict(zip(self.names, self.contributions[row].tolist(), strict=True))


def prepare(
    texts: Sequence[str], plan: Plan, settings: SearchSettings, index: Index, model: TextModel | None
) -> list[PreparedQuery]:
    """Encode queries, weight their rows by idf, and find each part's ceiling.

    Raises:
        ConfigError: the plan needs a model, and there is none.
    """
    names = [part for part in dict.fromkeys([*plan.first, *plan.weights]) if part != LEXICAL]
    if names and model is None:
        raise ConfigError(f"-w {plan.workflow} needs the model that the index was built with")
    encoded = model.encode_query(texts) if model is not None and names else {}
    floored = frozenset(filter(settings.floors, names))
    prepared = []
    for i, text in enumerate(texts):
        idf = {
            name: _idf(index, name, encoded[name].ids_of(i), settings.idf[name], model)
            for name in names
            if settings.idf.get(name)
        }
        vectors = {
            name: encoded[name][i] * idf[name][:, None] if name in idf else encoded[name][i] for name in names
        }
        ids = {name: encoded[name].ids_of(i) for name in names if name in settings.exact}
        ceilings = _ceilings(text, vectors, plan, settings, index)
        prepared.append(PreparedQuery(text, vectors, ceilings, ids, floored, idf))
    return prepared


def _idf(
    index: Index, name: str, ids: Int[np.ndarray, " m"], power: float, model: TextModel | None
) -> Float[np.ndarray, " m"]:
    special = () if model is None else model.sets[name].special
    # A [MASK] stands in no document, nor does a sign skipped there: they would seem the rarest of words.
    return np.where(np.isin(ids, special), np.float32(0), index.idf(name, ids) ** power)


def _ceilings(
    text: str, vectors: Mapping[str, np.ndarray], plan: Plan, settings: SearchSettings, index: Index
) -> dict[str, float]:
    if settings.scale == "none" or len(plan.weights) + len(plan.feedback) == 1:
        return dict.fromkeys(plan.weights, 1.0)
    ceilings = {name: float(np.linalg.norm(rows, axis=1).sum()) for name, rows in vectors.items()}
    if LEXICAL in plan.weights and index.lexical is not None:
        ceilings[LEXICAL] = index.lexical.ceiling(text)
    return {part: ceiling or 1.0 for part, ceiling in ceilings.items()}


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
