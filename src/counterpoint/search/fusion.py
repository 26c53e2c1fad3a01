"""Fusion: combine several scores into one, for the parts of a hybrid index and for whole runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError, DataError, ShapeError
from counterpoint.search.run import Run

__all__ = ["Fusion", "fuse", "fuse_runs"]

Method = Literal["convex", "rrf"]
Normalisation = Literal["none", "min-max", "z-score"]
Missing = Literal["error", "min", "zero"]


@dataclass(frozen=True, kw_only=True)
class Fusion:
    """How scores of one query's candidates are combined.

    Attributes:
        weights: weight of each part by name, in the order of the columns of `fuse`.
        method: `convex` adds weight × score. `rrf` adds weight / (k + rank), reciprocal rank fusion (Cormack,
            Clarke and Büttcher 2009); candidates with equal scores share the best of their ranks.
        normalise: for `convex`, normalises each part over the candidates that have it. `min-max` maps scores
            to [0, 1], `z-score` to mean 0 and (population) standard deviation 1. A part that gives all its
            candidates the same score, or has only one, becomes 0.
        k: the constant of `rrf`.
        missing: what a part contributes for a candidate that it lacks. `error` refuses it. `min` takes the
            lowest score of the part's list (the last rank for `rrf`). `zero` contributes 0 after
            normalisation, which is the lowest for min-max but the average for z-score. A part that no
            candidate has contributes 0 in either case. None is `zero` for `rrf`, as published, and `error`
            for `convex`. The search engine computes missing scores instead.

    Raises:
        ConfigError: lists everything that is wrong.
    """

    weights: Mapping[str, float]
    method: Method = "rrf"
    normalise: Normalisation = "none"
    k: float = 60
    missing: Missing | None = None

    def __post_init__(self) -> None:
        if self.missing is None:
            object.__setattr__(self, "missing", "zero" if self.method == "rrf" else "error")
        faults = [
            f"fusion: {name} must be one of {', '.join(get_args(options))}, found {getattr(self, name)!r}"
            for name, options in (("method", Method), ("normalise", Normalisation), ("missing", Missing))
            if getattr(self, name) not in get_args(options)
        ]
        if not self.weights:
            faults.append("fusion: no part has a weight; give weights={'name': 1.0, ...}")
        faults += [
            f"fusion: the weight of {name!r} must be a finite number, found {weight!r}"
            for name, weight in self.weights.items()
            if not (isinstance(weight, (int, float)) and isfinite(weight))
        ]
        if self.method == "rrf" and self.normalise != "none":
            faults.append("fusion: rrf uses ranks only; leave normalise (--normalise) at 'none'")
        if not (isfinite(self.k) and self.k >= 0):
            faults.append(f"fusion: k must be a number from 0 up, found {self.k!r}")
        if faults:
            raise ConfigError(*faults)
        object.__setattr__(self, "weights", dict(self.weights))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `Fusion(**fusion.to_dict())` equals this fusion."""
        return asdict(self)


def fuse(
    scores: Float[np.ndarray, "n parts"], fusion: Fusion
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n parts"]]:
    """Fuse the scores of one query's candidates.

    Args:
        scores: one row per candidate, one column per part in the order of `fusion.weights`; NaN where a
            candidate lacks a part.
        fusion: method, weights and normalisation.

    Returns:
        The fused scores, and the contribution of each part, whose rows sum to the scores.

    Raises:
        ShapeError: the number of columns is not that of the parts.
        DataError: a score is infinite, or one is missing and `fusion.missing` is `error`.
    """
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != len(fusion.weights):
        raise ShapeError(
            f"fusion of {', '.join(fusion.weights)}: expected {len(fusion.weights)} columns, "
            f"found an array of shape {found.shape}"
        )
    contributions = np.empty_like(found)
    for column, (name, weight) in enumerate(fusion.weights.items()):
        contributions[:, column] = weight * _comparable(found[:, column], name, fusion)
    return contributions.sum(axis=1), contributions


def fuse_runs(runs: Mapping[str, Run] | Sequence[Run], fusion: Fusion | None = None) -> Run:
    """Fuse whole runs; a query of any run is in the result.

    Runs have the names of their weights; those of a list are named "1", "2", and so on. Without `fusion`,
    reciprocal ranks are added with equal weights.

    Raises:
        ConfigError: the runs and the weights do not have the same names.
        DataError: a document is missing from a run and `fusion.missing` is `error`.
    """
    if not isinstance(runs, Mapping):
        runs = {str(number): run for number, run in enumerate(runs, start=1)}
    fusion = fusion or Fusion(weights=dict.fromkeys(runs, 1.0))
    if runs.keys() != fusion.weights.keys():
        raise ConfigError(
            f"fusion: weights for {', '.join(fusion.weights)} do not fit runs {', '.join(runs) or '(none)'}"
        )
    parts = [runs[name] for name in fusion.weights]
    results: dict[str, dict[str, float]] = {}
    for query in dict.fromkeys(query for run in parts for query in run):
        columns = [run.scores(query) if query in run else {} for run in parts]
        candidates = list(dict.fromkeys(document for column in columns for document in column))
        rows = [[column.get(document, np.nan) for column in columns] for document in candidates]
        try:
            fused, _ = fuse(np.array(rows).reshape(-1, len(parts)), fusion)
        except DataError as error:
            raise DataError(f"query {query!r}: {error}") from error
        results[query] = dict(zip(candidates, fused.tolist(), strict=True))
    sources = {name: dict(runs[name].provenance) for name in fusion.weights}
    return Run(results, provenance={"fusion": fusion.to_dict(), "runs": sources})


def _comparable(scores: Float[np.ndarray, " n"], name: str, fusion: Fusion) -> Float[np.ndarray, " n"]:
    """Make one part's scores comparable: fill in missing ones, then normalise or turn into ranks."""
    present = ~np.isnan(scores)
    if np.isinf(scores).any():
        raise DataError(f"fusion: part {name!r} has an infinite score")
    if not present.all() and fusion.missing == "error":
        raise DataError(
            f"fusion: {np.sum(~present)} of {len(scores)} candidates have no score from part {name!r}; "
            "compute them, or set missing (--missing) to 'min' or 'zero'"
        )
    if not present.any():
        return np.zeros(len(scores))
    known = scores[present]
    filled = np.where(present, scores, known.min())
    if fusion.method == "rrf":
        # The number of higher known scores is the number to the right of the insertion point.
        rank = 1 + len(known) - np.searchsorted(np.sort(known), filled, side="right")
        values = 1 / (fusion.k + rank)
    else:
        values = _normalised(filled, known, fusion.normalise)
    return np.where(present, values, 0) if fusion.missing == "zero" else values


def _normalised(
    scores: Float[np.ndarray, " n"], known: Float[np.ndarray, " m"], how: Normalisation
) -> Float[np.ndarray, " n"]:
    if how == "none":
        return scores
    low, high = known.min(), known.max()
    if low == high:
        return np.zeros(len(scores))
    unit = (scores - low) / (high - low)
    if how == "min-max":
        return unit
    # The map to [0, 1] does not change z-scores, and squares neither vanish nor overflow there.
    inner = (known - low) / (high - low)
    return (unit - inner.mean()) / inner.std()
