"""Tune the weights of a hybrid's parts on a development split with a grid (Lee et al. 2023, eq. 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise

from typing_extensions import override

from counterpoint.errors import ConfigError, DataError
from counterpoint.index import Index, TextModel
from counterpoint.index.settings import PassingModel
from counterpoint.measure.evaluate import evaluate
from counterpoint.search import LEXICAL, Searcher, SearchSettings
from counterpoint.types import Qrels, Ragged

__all__ = ["Tuned", "TunedShares", "all_shares", "tune_shares", "tune_weight"]


@dataclass(frozen=True)
class Tuned:
    """Result of a grid over the weight of one part.

    Attributes:
        part: the part whose weight was varied.
        values: the measure at each weight, in the grid's order.
        settings: search settings with the best weight, the first of equals.
    """

    part: str
    values: Mapping[float, float]
    settings: SearchSettings

    @property
    def weight(self) -> float:
        """The best weight."""
        return max(self.values, key=self.values.__getitem__)

    @property
    def says_nothing(self) -> bool:
        """Whether several weights were tried and all give the same value."""
        return len(self.values) > 1 and len(set(self.values.values())) == 1

    @property
    def at_the_edge(self) -> bool:
        """Whether the best weight is the grid's first or last, so that a better one may lie outside."""
        return self.weight in (next(iter(self.values)), list(self.values)[-1])


@dataclass(frozen=True)
class TunedShares:
    """Result of all ways to split a total weight of 1 among the parts of a hybrid.

    Attributes:
        parts: in the order of the shares.
        values: the measure by shares, in the order of trial.
        settings: search settings with the best shares, the first of equals.
    """

    parts: tuple[str, ...]
    values: Mapping[tuple[float, ...], float]
    settings: SearchSettings

    @property
    def shares(self) -> tuple[float, ...]:
        """The best shares."""
        return max(self.values, key=self.values.__getitem__)

    @property
    def says_nothing(self) -> bool:
        """Whether several shares were tried and all give the same value."""
        return len(self.values) > 1 and len(set(self.values.values())) == 1


def tune_weight(
    searcher: Searcher,
    queries: Mapping[str, str],
    qrels: Qrels,
    weights: Sequence[float],
    part: str | None = None,
    *,
    measure: str = "AP",
    depth: int = 1000,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Tuned:
    """Search with each weight of one part, the other weights unchanged, and measure the hybrid.

    Each weight is searched as a user would search: a part of weight 0 proposes no document, and every
    proposed document gets its exact score in each part. Queries are encoded once.

    Args:
        searcher: an index with its model and the settings to change.
        queries: id to text.
        qrels: judgements of these queries.
        weights: the grid.
        part: a vector set; optional if the index has exactly one pooled set.
        measure: the measure to optimise.
        depth: number of documents retrieved per query.
        on_progress: called with the number of weights done.

    Raises:
        ConfigError: the part is ambiguous, the grid is empty or has a number below 0, or no other part has a
            weight.
        DataError: the measure is 0 at every weight.
    """
    name = _part(searcher.index, part)
    others = {
        other: weight for other, weight in searcher.settings.weights.items() if other != name and weight
    }
    if not others:
        raise ConfigError(f"tune: no part other than {name!r} has a weight; set one, as in weights lexical=1")
    if not weights or min(weights) < 0:
        raise ConfigError(f"tune: the grid needs weights of at least 0, found {list(weights)}")
    tried = {weight: {**others, name: weight} for weight in weights}
    values = _values(searcher, queries, qrels, list(tried.values()), (measure, depth), on_progress)
    by_weight = dict(zip(tried, values, strict=True))
    best = max(by_weight, key=by_weight.__getitem__)
    return Tuned(name, by_weight, replace(searcher.settings, weights=tried[best]))


def tune_shares(
    searcher: Searcher,
    queries: Mapping[str, str],
    qrels: Qrels,
    steps: int,
    *,
    measure: str = "AP",
    depth: int = 1000,
    on_progress: Callable[[int], None] = lambda done: None,
) -> TunedShares:
    """Search with every way to split a total weight of 1 among the parts of a hybrid, and measure.

    Shares are multiples of 1 / steps. With n weighted parts, there are (steps + n − 1)! / (steps! (n − 1)!)
    ways; each part alone is one of them. Each is searched as a user would search, as in `tune_weight`, which
    explains the other arguments.

    Raises:
        ConfigError: fewer than two parts have a weight, or steps is below 1.
        DataError: the measure is 0 for all shares.
    """
    parts = tuple(part for part, weight in searcher.settings.weights.items() if weight)
    if len(parts) < 2 or steps < 1:
        raise ConfigError(
            f"tune: shares need at least two parts with a weight, and at least one step; found "
            f"{', '.join(parts) or 'none'} and {steps}"
        )
    tried = list(all_shares(len(parts), steps))
    weights = [dict(zip(parts, shares, strict=True)) for shares in tried]
    values = _values(searcher, queries, qrels, weights, (measure, depth), on_progress)
    best = max(range(len(tried)), key=values.__getitem__)
    settings = replace(searcher.settings, weights=weights[best])
    return TunedShares(parts, dict(zip(tried, values, strict=True)), settings)


def all_shares(parts: int, steps: int, least: int = 0) -> Iterator[tuple[float, ...]]:
    """Yield every way to split 1 among parts, by rising share of the first part, then of the second, ….

    Args:
        parts: number of parts.
        steps: shares are multiples of 1 / steps.
        least: minimum number of steps per part; with 1, every part has a weight.
    """
    free = steps - least * parts
    if free < 0:
        return
    for bars in combinations(range(free + parts - 1), parts - 1):
        edges = (-1, *bars, free + parts - 1)
        yield tuple((right - left - 1 + least) / steps for left, right in pairwise(edges))


def _values(
    searcher: Searcher,
    queries: Mapping[str, str],
    qrels: Qrels,
    weights: Sequence[Mapping[str, float]],
    measured: tuple[str, int],
    on_progress: Callable[[int], None],
) -> list[float]:
    """Measure the first documents with each of several weights; refuse a measure that is 0 with all."""
    measure, depth = measured
    model = None if searcher.model is None else _EncodesOnce(searcher.model)
    alike: dict[tuple[str, ...], list[int]] = {}  # the documents found depend on which parts have a weight
    for at, each in enumerate(weights):
        alike.setdefault(tuple(part for part, weight in each.items() if weight), []).append(at)
    values: dict[int, float] = {}
    for places in alike.values():
        settings = [replace(searcher.settings, weights=weights[at]) for at in places]
        runs = Searcher(searcher.index, model, settings[0]).run_each(queries, depth, settings)
        for at, run in zip(places, runs, strict=True):
            values[at] = evaluate(run, qrels, [measure]).measures[measure]
            on_progress(len(values))
    if not any(values.values()):
        raise DataError(
            f"tune: {measure} is 0 at every weight, so nothing relevant was found; check that the index and "
            "the judgements come from the same collection"
        )
    return [values[at] for at in range(len(weights))]


def _part(index: Index, part: str | None) -> str:
    pooled = [name for name, layout in index.layouts.items() if layout.pooled]
    if part is None and len(pooled) == 1:
        return pooled[0]
    known = [*([LEXICAL] if index.manifest.has_lexical else []), *index.layouts]
    if part not in known:
        raise ConfigError(f"tune: name the part to tune: {', '.join(known)}; found {part!r}")
    return part


class _EncodesOnce(PassingModel):
    def __init__(self, model: TextModel):
        super().__init__(model)
        self._encoded = cache(lambda texts: model.encode_query(list(texts)))

    @override
    def encode_query(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        return self._encoded(tuple(texts))
