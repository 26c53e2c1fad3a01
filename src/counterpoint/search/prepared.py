"""Data between the steps of the engine: prepared queries and scored candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ConfigError, DataError
from counterpoint.index import Asked, Index, TextModel
from counterpoint.search.fusion import Fusion
from counterpoint.search.settings import LEXICAL, Plan, SearchSettings
from counterpoint.types import Ragged

__all__ = ["Candidates", "Feedback", "PreparedQuery", "Scored", "prepare", "slopes_of"]


@dataclass(frozen=True)
class PreparedQuery:
    """A query ready to be scored.

    Attributes:
        text: the query as it was asked.
        vectors: rows by vector set, with idf applied.
        ceilings: the highest score that each part could reach; 1 if parts are not scaled.
        ids: ids of the rows, only for sets that match exactly.
        floored: sets whose negative best similarities are raised to 0.
        idf: the factors of the rows, for sets that are weighted by idf.
    """

    text: str
    vectors: Mapping[str, Float[np.ndarray, "m d"]]
    ceilings: Mapping[str, float]
    ids: Mapping[str, Int[np.ndarray, " m"]]
    floored: frozenset[str]
    idf: Mapping[str, Float[np.ndarray, " m"]]

    def asked(self, part: str) -> Any:
        """The query for the store of a part: the text for BM25, vectors otherwise."""
        if part == LEXICAL:
            return self.text
        return Asked(self.vectors[part], self.ids.get(part), part in self.floored)


@dataclass(frozen=True)
class Candidates:
    """The candidates of one query.

    Attributes:
        positions: in the index.
        table: exact scores divided by the part's ceiling, one column per part, before they are weighted.
        evidence: of each part (see `evidence_of`); empty where it was not asked for.
    """

    positions: Int[np.ndarray, " c"]
    table: Float[np.ndarray, "c parts"]
    evidence: Mapping[str, float]


@dataclass(frozen=True)
class Feedback:
    """Similarity of each candidate to the best ones.

    Attributes:
        scores: Σ_j w_j cos(d_j, d) for each candidate d, over the best candidates d_j; the mean over several
            pooled sets. Between −1 and 1.
        rows: rows of the best candidates.
        weights: w of each of them; they sum to 1.
    """

    scores: Float[np.ndarray, " c"]
    rows: Int[np.ndarray, " b"]
    weights: Float[np.ndarray, " b"]


@dataclass(frozen=True)
class Scored:
    """The scores of one query's candidates, with the contribution of each part.

    Attributes:
        positions: positions of the candidates in the index.
        scores: fused scores.
        contributions: contribution of each part; rows sum to `scores`.
        names: the parts, in the order of the columns.
        slopes: for each part, the slope of its contribution over its own score.
        feedback: source of the last column, if that is feedback.
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
        DataError: a vector of a query is NaN or infinite.
    """
    names = [part for part in dict.fromkeys([*plan.first, *plan.weights]) if part != LEXICAL]
    if names and model is None:
        raise ConfigError(
            f"workflow {plan.workflow} needs the model that the index was built with; use "
            "counterpoint.open(folder).searcher(), or Searcher(index, model)"
        )
    encoded = model.encode_query(texts) if model is not None and names else {}
    for name in names:
        _check_finite(encoded[name], texts, name)
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


def _check_finite(rows: Ragged, texts: Sequence[str], name: str) -> None:
    finite = np.isfinite(rows.values).all(axis=1)
    if not finite.all():
        query = texts[int(np.searchsorted(rows.offsets, int(finite.argmin()), side="right")) - 1]
        raise DataError(f"query {query!r}: its vector in {name!r} is NaN or infinite; check the model")


def _idf(
    index: Index, name: str, ids: Int[np.ndarray, " m"], power: float, model: TextModel | None
) -> Float[np.ndarray, " m"]:
    special = () if model is None else model.sets[name].special
    # No document has a [MASK] or a sign skipped there, so their idf would be that of the rarest words.
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
    """For each part, the slope of its contribution over its score, which scales its explanation.

    Without normalisation this is the weight. With one, it is the slope of the line on which all candidates
    lie. For fused ranks it is 0, since no word has a share then.
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
