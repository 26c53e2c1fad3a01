"""Recall of first stages: a search compared with scoring every document by every part."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from counterpoint.errors import ConfigError
from counterpoint.index import Index
from counterpoint.search.engine import Searcher
from counterpoint.search.run import Run

__all__ = ["Recall", "recall_of", "sampled_queries"]

WORDS = 16  # of a sampled document's text, if it has no title


@dataclass(frozen=True)
class Recall:
    """Recall of a search against brute force.

    Attributes:
        queries: number of queries.
        recall: for each depth, the mean share of the best documents by brute force that the search found.
        worst: the query with the lowest recall at the smallest depth, and that recall.
    """

    queries: int
    recall: Mapping[int, float]
    worst: tuple[str, float]


def recall_of(
    searcher: Searcher,
    queries: Mapping[str, str],
    depths: tuple[int, ...] = (10, 100),
    on_progress: Callable[[int], None] = lambda done: None,
) -> Recall:
    """Compare a searcher's hybrid, at some depths, with the same scores computed for every document.

    Documents that score 0 do not count as missed. Progress is the number of queries done both ways.

    Raises:
        ConfigError: there are no queries.
    """
    if not queries:
        raise ConfigError("no queries to search for; the index has no text")
    names = searcher.index.names_of(searcher.index.positions)
    shares: dict[int, dict[str, float]] = {depth: {} for depth in depths}
    for done, (query, text) in enumerate(queries.items(), start=1):
        asked = {query: text}
        every = Run({query: dict.fromkeys(names, 0.0)})
        best_first = searcher.run(asked, max(depths), candidates=every)[query]
        wanted = [name for name, score in best_first if score > 0]
        found = [name for name, _ in searcher.run(asked, max(depths))[query]]
        for depth in depths:
            best = set(wanted[:depth])
            shares[depth][query] = len(best & set(found[:depth])) / len(best) if best else 1.0
        on_progress(done)
    lost = min(queries, key=lambda query: shares[min(depths)][query])
    means = {depth: sum(each.values()) / len(each) for depth, each in shares.items()}
    return Recall(len(queries), means, (queries[lost], shares[min(depths)][lost]))


def sampled_queries(index: Index, count: int, seed: int = 0) -> dict[str, str]:
    """Titles of random documents, or their first words if they have none; id to text."""
    drawn = random.Random(seed).sample(index.positions.tolist(), min(count, len(index)))
    documents = index.documents_at(np.sort(np.array(drawn, np.int64)))
    texts = {each.id: each.title.strip() or " ".join(each.text.split()[:WORDS]) for each in documents}
    return {name: text for name, text in texts.items() if text}
