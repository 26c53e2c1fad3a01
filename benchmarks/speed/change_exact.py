"""Answers after changes next to exact ones over the documents that are live."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from exact import scores_of
from vector_files import Query

SLACK = 1e-5  # relative; what is this near to the last of the best is as good


def maxsim_scores(files: Any, queries: list[Query], cache: Path) -> np.ndarray:
    """MaxSim in float32 of each query with each document, live or not; kept in a file for the next time."""
    if cache.exists() and (kept := np.load(cache)).shape == (len(queries), files.documents):
        return kept
    scores = np.concatenate(list(scores_of(files, queries, "tokens")), axis=1)
    np.save(cache, scores)
    return scores


def bm25_scores(
    terms: Sequence[Sequence[str]], live: Sequence[int], queries: list[Query], k1: float, b: float
) -> np.ndarray:
    """BM25 of each query with each live document; −inf elsewhere. Only live documents are counted."""
    scores = np.full((len(queries), len(terms)), -np.inf)
    counted = {number: Counter(terms[number]) for number in live}
    mean = sum(len(terms[number]) for number in live) / len(live)
    for query, row in zip(queries, scores, strict=True):
        row[list(live)] = 0
        for term, times in Counter(query.terms).items():
            having = [(number, counts[term]) for number, counts in counted.items() if term in counts]
            idf = np.log1p((len(live) - len(having) + 0.5) / (len(having) + 0.5))
            for number, tf in having:
                row[number] += times * idf * tf / (tf + k1 * (1 - b + b * len(terms[number]) / mean))
    return scores


def judged(
    found: Mapping[str, Sequence[str]], queries: list[Query], scores: np.ndarray, live: Sequence[int]
) -> dict[str, float]:
    """Recall at 10 of answers, and how many of them are not live or are there twice.

    Args:
        found: by query, numbers of documents, as text.
        queries: in the order of `scores`.
        scores: of each query with each document [queries, documents].
        live: which documents count.
    """
    there, shares, wrong = set(map(str, live)), [], 0
    for query, row in zip(queries, scores, strict=True):
        best = np.sort(row[list(live)])[::-1][:10]
        best = best[best > 0] if (best > 0).any() else best
        names = found[query.id]
        right = [name for name in dict.fromkeys(names) if name in there]
        wrong += len(names) - len(right)
        least = best[-1] - SLACK * abs(best[-1])
        shares.append(min(len(best), sum(row[int(name)] >= least for name in right)) / len(best))
    return {"recall": float(np.mean(shares)), "wrong": wrong}


def same(found: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]) -> float:
    """Share of the documents that another index finds, too."""
    return float(np.mean([len({*found[q]} & {*wanted[q]}) / max(1, len(wanted[q])) for q in wanted]))
