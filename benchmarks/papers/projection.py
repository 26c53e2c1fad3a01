"""How much of BM25's ranking survives the random projection of its vectors (Lee et al. 2023, section 3.2).

For each collection and dimension: the share of true BM25's ten best documents that are among the ten best by
projected vectors, the error's standard deviation at them and the exact one, and their mean score. Every seed
draws another projection; the share has a 95 % interval over them.

    python -m benchmarks.papers.projection DATA/cranfield DATA/scifact [--dims 768 4096] [--seeds 0 1 2]
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from benchmarks.common import parser_of
from benchmarks.papers.seeds import print_table, spread_with_interval

from counterpoint.data import open_collection
from counterpoint.index import BM25Vectors, project_terms
from counterpoint.types import Ragged

PIECE = 256  # texts projected at a time
TOP = 10


def dense(packed: Ragged, terms: np.ndarray) -> np.ndarray:
    """Vectors over some terms; others are left out."""
    places = np.searchsorted(terms, packed.ids).clip(max=len(terms) - 1)
    known = terms[places] == packed.ids
    made = np.zeros((len(packed), len(terms)), np.float32)
    made[np.repeat(np.arange(len(packed)), packed.lengths)[known], places[known]] = packed.values[known, 0]
    return made


def projected(packed: Ragged, dim: int, seed: int) -> np.ndarray:
    """A·x of many vectors, piece by piece."""
    pieces = [packed.take(np.arange(at, min(at + PIECE, len(packed)))) for at in range(0, len(packed), PIECE)]
    return np.concatenate([project_terms(piece, dim, seed) for piece in pieces])


def best(scores: np.ndarray) -> np.ndarray:
    """The ten best documents of each query; ties by position."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :TOP]


def deviation(q: np.ndarray, d: np.ndarray, lengths: tuple[np.ndarray, np.ndarray], dim: int) -> np.ndarray:
    """The exact standard deviation of every pair's error, from the squares of lengths and of shared terms."""
    shared = (q**2) @ (d**2).T
    return np.sqrt((lengths[0][:, None] * lengths[1] + (q @ d.T) ** 2 - 2 * shared) / dim)


def squares(packed: Ragged) -> np.ndarray:
    """The squared length of each vector."""
    return np.array([float(np.sum(packed[i] ** 2)) for i in range(len(packed))])


def kept(top: np.ndarray, found: np.ndarray) -> float:
    """The share of the ten best documents that are among ten others, mean over queries."""
    pairs = zip(top.tolist(), found.tolist(), strict=True)
    return float(np.mean([len(set(a) & set(b)) / TOP for a, b in pairs]))


def line(packed: tuple[Ragged, Ragged], sides: tuple[np.ndarray, np.ndarray], dim: int, seeds: list[int]):
    """The row of a collection and dimension: queries and documents as stored, and over the queries' terms."""
    q, d = packed
    true = sides[0] @ sides[1].T
    top = best(true)
    shares, errors = [], []
    for seed in seeds:
        scores = projected(q, dim, seed) @ projected(d, dim, seed).T
        shares.append(100 * kept(top, best(scores)))
        errors.append(np.take_along_axis(scores - true, top, 1))
    exact = np.take_along_axis(deviation(*sides, (squares(q), squares(d)), dim), top, 1)
    return {
        "queries": str(len(q)),
        "overlap of ten best, %": spread_with_interval(shares, 1),
        "their mean score": f"{np.take_along_axis(true, top, 1).mean():.2f}",
        "sd of the error": f"{np.std(errors):.2f}",
        "exact sd": f"{np.sqrt(np.mean(exact**2)):.2f}",
    }


def main() -> None:
    """Print one line a collection and dimension."""
    parser = parser_of(__doc__)
    parser.add_argument("collections", nargs="+", type=Path)
    parser.add_argument("--dims", nargs="+", type=int, default=[768, 4096])
    parser.add_argument("--split", default="test")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    asked = parser.parse_args()
    rows = {}
    for place in asked.collections:
        collection = open_collection(place, passage_words=None)
        texts = [document.full_text for document in collection.documents()]
        vectors = BM25Vectors.fit(texts)
        packed = vectors.queries(list(collection.queries(asked.split).values())), vectors.documents(texts)
        terms = np.unique(packed[0].ids)
        sides = dense(packed[0], terms), dense(packed[1], terms)
        for dim in asked.dims:
            rows[f"{place.name}, {dim}"] = line(packed, sides, dim, asked.seeds)
    print_table(rows, "collection, dimension")


if __name__ == "__main__":
    main()
