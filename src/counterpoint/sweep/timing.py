"""The latency of single queries, sent one after the other."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

__all__ = ["HITS", "QUERIES", "SECONDS", "Latency", "measure_latency", "sample"]

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
