"""The latency of single queries, sent one after the other."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import final

import numpy as np

from counterpoint.index import TextModel, VectorSet
from counterpoint.types import Ragged, Side, Span

__all__ = ["HITS", "QUERIES", "SECONDS", "HeldQueries", "Latency", "measure_latency", "sample"]

QUERIES = 200  # most queries timed
SECONDS = 30.0  # no further query is timed after this time
HITS = 10  # documents returned by a timed search
SEED = 0


@final
@dataclass(frozen=True)
class Latency:
    """Milliseconds per query: median, 95th percentile, and the number of queries."""

    median: float
    p95: float
    queries: int

    def to_dict(self) -> dict[str, float]:
        """Plain data."""
        return asdict(self)


def sample(texts: Sequence[str]) -> list[str]:
    """At most `QUERIES` of the texts, drawn without replacement, always the same ones."""
    return random.Random(SEED).sample(list(texts), min(QUERIES, len(texts)))


def measure_latency(texts: Sequence[str], call: Callable[[str], object]) -> Latency:
    """Time `call` on each text in turn, after one call that is not timed."""
    call(texts[0])
    started, times = time.perf_counter(), []
    for text in texts:
        before = time.perf_counter()
        call(text)
        times.append(1000 * (time.perf_counter() - before))
        if time.perf_counter() - started > SECONDS:
            break
    return Latency(float(np.median(times)), float(np.percentile(times, 95)), len(times))


@final
class HeldQueries:
    """A model with the vectors of some queries in memory, so that search is timed without encoding."""

    def __init__(self, model: TextModel, texts: Sequence[str]):
        self.model = model
        self._fingerprint = model.fingerprint()
        encoded = model.encode_query(texts)
        self._held = {
            text: {name: packed.take(np.array([i])) for name, packed in encoded.items()}
            for i, text in enumerate(texts)
        }

    @property
    def sets(self) -> Mapping[str, VectorSet]:
        """The model's vector sets."""
        return self.model.sets

    def fingerprint(self) -> str:
        """The model's fingerprint."""
        return self._fingerprint

    def encode_query(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """The vectors of one of the texts."""
        (text,) = texts
        return self._held[text]

    def encode_document(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """The model's document vectors."""
        return self.model.encode_document(texts)

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """The model's spans."""
        return self.model.spans(texts, name, side)

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[np.ndarray]:
        """The model's row ids."""
        return self.model.row_ids(texts, name, side)

    def gate_weights(self, texts: Sequence[str], name: str) -> Ragged:
        """The model's gate weights."""
        return self.model.gate_weights(texts, name)

    def table(self, name: str) -> np.ndarray:
        """The model's table."""
        return self.model.table(name)
