"""The weight of one part of a hybrid, chosen on a development split by a grid (Lee et al. 2023, eq. 11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from counterpoint.errors import ConfigError, DataError
from counterpoint.index import Index, TextModel
from counterpoint.measure.evaluate import evaluate
from counterpoint.search import LEXICAL, Searcher, SearchSettings
from counterpoint.types import Qrels, Ragged

__all__ = ["Tuned", "tune_weight"]


@dataclass(frozen=True)
class Tuned:
    """What a grid found.

    Attributes:
        part: whose weight was varied.
        values: the measure at each weight, in the grid's order.
        settings: those of the best weight, the first of equals.
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
        """Whether several weights were tried and all are equally good."""
        return len(self.values) > 1 and len(set(self.values.values())) == 1

    @property
    def at_the_edge(self) -> bool:
        """Whether the best weight is the grid's first or last, so that a better one may lie outside."""
        return self.weight in (next(iter(self.values)), list(self.values)[-1])


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
    """Search by the hybrid with each weight of a part, the other weights as they are, and measure.

    Every weight is searched as a user would: a part of weight 0 proposes no document, and of what any other
    part proposes each part has its exact score. Queries are encoded once.

    Args:
        searcher: an index with its model and the settings that are to be changed.
        queries: id to text.
        qrels: judgements of these queries.
        weights: the grid.
        part: a vector set; may be left out where the index has one of one vector a text.
        measure: what is best.
        depth: documents retrieved for each query.
        on_progress: called with the number of weights done.

    Raises:
        ConfigError: it is not clear which part is meant, the grid is empty or has a number below 0, or no
            other part has a weight.
        DataError: the measure is 0 at every weight.
    """
    name = _part(searcher.index, part)
    others = {
        other: weight for other, weight in searcher.settings.weights.items() if other != name and weight
    }
    if not others:
        raise ConfigError(
            f"tune: no part beside {name!r} has a weight; give them some, as in weights lexical=1"
        )
    if not weights or min(weights) < 0:
        raise ConfigError(f"tune: the grid needs weights from 0 up, found {list(weights)}")
    model = None if searcher.model is None else cast(TextModel, _EncodesOnce(searcher.model))
    values: dict[float, float] = {}
    tried: dict[float, SearchSettings] = {}
    for done, weight in enumerate(weights, start=1):
        tried[weight] = replace(searcher.settings, weights={**others, name: weight})
        run = Searcher(searcher.index, model, tried[weight]).run(queries, depth)
        values[weight] = evaluate(run, qrels, [measure]).measures[measure]
        on_progress(done)
    if not any(values.values()):
        raise DataError(
            f"tune: {measure} is 0 at every weight, so nothing relevant was found; were the index and the "
            "judgements made from one collection?"
        )
    best = max(values, key=values.__getitem__)
    return Tuned(name, values, tried[best])


def _part(index: Index, part: str | None) -> str:
    """The part that is meant."""
    pooled = [name for name, layout in index.layouts.items() if layout.pooled]
    if part is None and len(pooled) == 1:
        return pooled[0]
    lexical = [LEXICAL] if index.manifest.lexical else []
    known = [*lexical, *index.layouts]
    if part not in known:
        raise ConfigError(f"tune: say whose weight; there are {', '.join(known)}, found {part!r}")
    return part


class _EncodesOnce:
    """A model that remembers the queries that it has encoded."""

    def __init__(self, model: TextModel):
        self._model = model
        self._kept: dict[tuple[str, ...], Mapping[str, Ragged]] = {}

    def encode_query(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        key = tuple(texts)
        if key not in self._kept:
            self._kept[key] = self._model.encode_query(texts)
        return self._kept[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
