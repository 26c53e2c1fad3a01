"""Copy a trained scorer's weights into the model's search settings, so that an index ranks as it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Any, cast

from counterpoint.model import Model
from counterpoint.score import Dot, MaxSim, Mix, Scorer, Sum, ZScore

__all__ = ["scorer_to_search", "searched_otherwise", "why_not"]


def scorer_to_search(scorer: Scorer, model: Model) -> tuple[bool, str] | None:
    """Set the model's search settings to the weights of the scorer.

    Fixed weights change nothing if the recipe declares how its model is searched. Without such settings those
    of several sets are taken as they are. Weights become `weights` by vector set with `scale` "none", if the
    scorer is a weighted sum of one score per set. The divisor of a `ZScore` becomes part of a weight. An
    index then gives the scorer's score, except for the rounding of its codec and for idf, which the index
    computes itself.

    Returns:
        Whether the settings were changed, and a sentence about it. None if the scorer has no say.
    """
    learns = any(True for _ in scorer.parameters())
    learnt = list(_leaves(scorer))
    if not learns and not any(isinstance(part, ZScore) for part in scorer.modules()):
        if model.search is not None or len({getattr(leaf, "on", None) for leaf, _ in learnt}) < 2:
            return None
    reason = why_not(learnt, model)
    said = ", ".join(f"{getattr(leaf, 'on', type(leaf).__name__)} {weight:.4g}" for leaf, weight in learnt)
    if reason is not None:
        return False, f"the scorer's weights ({said}) are not in the model's search settings: {reason}"
    weights: dict[str, float] = {}
    for leaf, weight in learnt:
        on = cast(Dot | MaxSim, leaf).on
        weights[on] = weights.get(on, 0.0) + weight
    model.search = {**(model.search or {}), "weights": weights, "scale": "none", **_matching(learnt, model)}
    if idf := _idf(learnt):
        model.search |= {"idf": idf}
    return True, f"an index of the model is searched with the scorer's weights: {said}"


def searched_otherwise(scorer: Scorer, model: Model) -> str:
    """A sentence that says how a scorer without learnt weights ranks otherwise than a search; "" if not.

    Only ratios count. Weights of searches that scale the parts cannot be compared.
    """
    leaves, said = list(_leaves(scorer)), model.search or {}
    ours: dict[str, float] = {}
    for leaf, weight in leaves:
        if not isinstance(leaf, Dot | MaxSim):
            name = type(leaf).__name__
            return f"an index cannot compute {name}; a search ranks by the model's search settings instead"
        ours[leaf.on] = ours.get(leaf.on, 0.0) + weight
    theirs = {on: said.get("weights", {}).get(on, 0.0) for on in ours}
    first = next(iter(ours))
    alike = all(isclose(theirs[on] * ours[first], theirs[first] * ours[on], rel_tol=1e-6) for on in ours)
    if said.get("scale") != "none" or alike:
        return ""
    sides = (", ".join(f"{on} {weight:.4g}" for on, weight in each.items()) for each in (ours, theirs))
    return "the scorer weighs {}, but the model is searched with {}".format(*sides)


def why_not(learnt: Sequence[tuple[Scorer, float]], model: Model) -> str | None:
    """Why no search settings rank like a weighted sum of scorers. None if there are some."""
    scored = [leaf for leaf, _ in learnt if isinstance(leaf, Dot | MaxSim)]
    for leaf, weight in learnt:
        if not isinstance(leaf, Dot | MaxSim):
            return f"an index cannot compute {type(leaf).__name__}"
        if isinstance(leaf, MaxSim) and leaf.exact and not leaf.floor0:
            return (
                f"an index raises exact matches to at least 0, and MaxSim({leaf.on}) has exact without floor0"
            )
        if _way(leaf) and model.sets[leaf.on].pooled:
            return f"an index takes the plain inner product of {leaf.on}, which has one vector per text"
        if any(other.on == leaf.on and _way(other) != _way(leaf) for other in scored):
            return f"an index scores {leaf.on} in one way, the scorer both with and without exact or floor0"
        if any(_idf([(other, 1.0)]) != _idf([(leaf, 1.0)]) for other in scored if other.on == leaf.on):
            return f"an index weights {leaf.on} by idf in one way, but the scorer in several"
        if leaf.normalise and not model.has_unit_length(leaf.on):
            return f"the scorer uses cosines of {leaf.on}, whose vectors are not of unit length"
        if weight <= 0:
            return f"the weight of {leaf.on} is not above 0"
    said: Mapping[str, Any] = model.search or {}
    others = set(said.get("weights", {})) - {getattr(leaf, "on", "") for leaf, _ in learnt}
    if others:
        return f"the settings also use {', '.join(sorted(others))}, which the scorer does not"
    for name, ours in (("idf", _idf(learnt)), ("method", "convex"), ("normalise", "none")):
        if (said.get(name) or ours) != ours:
            return f"the settings have {name} = {said[name]!r}, which the scorer does not"
    return None


def _way(leaf: Scorer) -> str | None:
    """The search setting that makes sets match as in a scorer. None for a match of any row with any row."""
    if not isinstance(leaf, MaxSim):
        return None
    return "exact" if leaf.exact else "floor" if leaf.floor0 else None


def _idf(learnt: Sequence[tuple[Scorer, float]]) -> dict[str, float]:
    """The power of idf by vector set, for scorers that weight by idf."""
    return {leaf.on: leaf.idf for leaf, _ in learnt if isinstance(leaf, MaxSim) and leaf.idf}


def _matching(learnt: Sequence[tuple[Scorer, float]], model: Model) -> dict[str, list[str]]:
    """`exact` and `floor` as in the scorer, if the scorer or the model sets them.

    Sets that the scorer does not use keep the model's setting.
    """
    ways = {cast(Dot | MaxSim, leaf).on: _way(leaf) for leaf, _ in learnt}
    said: Mapping[str, Any] = model.search or {}
    found = {
        key: [name for name in said.get(key, ()) if name not in ways] + [on for on in ways if ways[on] == key]
        for key in ("exact", "floor")
    }
    return {key: names for key, names in found.items() if names or key in said}


def _leaves(scorer: Scorer, weight: float = 1.0) -> Iterator[tuple[Scorer, float]]:
    """Flatten nested sums into their leaves, each with the product of the weights above it.

    The divisor of a `ZScore` is part of its weight.
    """
    if isinstance(scorer, Mix | Sum):
        parts = cast(Sequence[Scorer], scorer.parts)
        own = scorer.weights if isinstance(scorer, Sum) else scorer.weights.tolist()
        for part, inner in zip(parts, own or [1.0] * len(parts), strict=True):
            yield from _leaves(part, weight * inner)
    elif isinstance(scorer, ZScore):
        yield scorer.of, weight / scorer.std_.item()
    else:
        yield scorer, weight
