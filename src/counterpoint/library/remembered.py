"""`Remembered`: a model with a cache of query vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from jaxtyping import Int
from typing_extensions import override

from counterpoint.errors import ConfigError
from counterpoint.index import TextModel
from counterpoint.index.settings import PassingModel
from counterpoint.recent import Recent
from counterpoint.types import Ragged, Side, Span

__all__ = ["Remembered"]

Encoded = Mapping[str, Ragged]


@final
class Remembered(PassingModel):
    """A model that caches the vectors of recent queries, and the rows of recent texts in explanations.

    Args:
        model: the model, which must not change.
        size: number of cached queries, and of other texts, the least recently used dropped first; 0 for none.

    Raises:
        ConfigError: `size` is negative.
    """

    def __init__(self, model: TextModel, size: int):
        if size < 0:
            raise ConfigError(f"cached must be 0 or a number of queries, found {size}")
        super().__init__(model)
        self._queries: Recent[Encoded] = Recent(size)
        self._spans: Recent[list[Span]] = Recent(size)
        self._ids: Recent[Int[np.ndarray, " n"]] = Recent(size)

    @property
    def batches(self) -> bool:
        """Whether several queries are encoded faster together than one by one."""
        return getattr(self.model, "batches", True)

    def full(self) -> Any:
        """The model itself, even if queries are encoded by its export."""
        load = getattr(self.model, "full", None)
        return self.model if load is None else load()

    @override
    def encode_query(self, texts: Sequence[str]) -> Encoded:
        """Vectors of queries, which must not be written to."""
        if not texts:
            return self.model.encode_query([])
        found = self._queries.each(texts, self._encoded)
        return {name: Ragged.concatenate([each[name] for each in found]) for name in self.sets}

    def _encoded(self, texts: list[str]) -> list[Encoded]:
        made = self.model.encode_query(texts)
        return [
            {name: packed.take(np.array([at])) for name, packed in made.items()} for at in range(len(texts))
        ]

    @override
    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """The span of text of each row of a set; those of recent texts are cached, as results repeat."""
        return self._spans.each(texts, lambda missing: self.model.spans(missing, name, side), (name, side))

    @override
    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """The ids of the rows of `spans`, cached as they are."""
        return self._ids.each(texts, lambda missing: self.model.row_ids(missing, name, side), (name, side))
