"""`Remembered`: a model with a cache of query vectors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ConfigError
from counterpoint.index import TextModel, VectorSet
from counterpoint.types import Ragged, Side, Span

__all__ = ["Remembered"]

Encoded = Mapping[str, Ragged]


@final
class Remembered:
    """A model that caches the vectors of recent queries.

    Args:
        model: the model, which must not change.
        size: number of cached queries, the least recently used dropped first; 0 for none.

    Raises:
        ConfigError: `size` is negative.
    """

    def __init__(self, model: TextModel, size: int):
        if size < 0:
            raise ConfigError(f"cached must be 0 or a number of queries, found {size}")
        self._model, self._size = model, size
        self._known: OrderedDict[str, Encoded] = OrderedDict()
        self._lock = Lock()

    @property
    def sets(self) -> Mapping[str, VectorSet]:
        """The vector sets by name."""
        return self._model.sets

    @property
    def batches(self) -> bool:
        """Whether several queries are encoded faster together than one by one."""
        return getattr(self._model, "batches", True)

    def fingerprint(self) -> str:
        """Fingerprint of the model."""
        return self._model.fingerprint()

    def full(self) -> Any:
        """The model itself, even if queries are encoded by its export."""
        load = getattr(self._model, "full", None)
        return self._model if load is None else load()

    def encode_query(self, texts: Sequence[str]) -> Encoded:
        """Vectors of queries, which must not be written to."""
        with self._lock:
            found = {text: self._known[text] for text in texts if text in self._known}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            made = self._model.encode_query(missing)
            for at, text in enumerate(missing):
                found[text] = {name: packed.take(np.array([at])) for name, packed in made.items()}
        with self._lock:
            for text in texts:
                self._known[text] = found[text]
                self._known.move_to_end(text)
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        if not texts:
            return self._model.encode_query([])
        return {name: Ragged.concatenate([found[text][name] for text in texts]) for name in self.sets}

    def encode_document(self, texts: Sequence[str]) -> Encoded:
        """Vectors of documents."""
        return self._model.encode_document(texts)

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """The span of text of each row of a set."""
        return self._model.spans(texts, name, side)

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """The ids of the rows of `spans`."""
        return self._model.row_ids(texts, name, side)

    def gate_weights(self, texts: Sequence[str], name: str) -> Ragged:
        """A gate's value for each row of documents."""
        return self._model.gate_weights(texts, name)

    def table(self, name: str) -> Float[np.ndarray, "v d"]:
        """The vector of every id in a static set."""
        return self._model.table(name)
