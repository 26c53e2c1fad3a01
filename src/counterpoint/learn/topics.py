"""Batches of queries on one topic, so that other queries' documents are hard negatives (TAS-B)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ConfigError
from counterpoint.index import Analyzer
from counterpoint.learn.batches import Sampler
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.seeds import seed_of
from counterpoint.measure.rows import unit_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["TopicBatches", "cluster", "term_vectors"]

QUERIES_A_TOPIC = 200  # as in TAS-B: 2,000 clusters of 400,000 queries
ROUNDS = 25
DIM = 64
POWER = 2  # power iterations; enough for spectra that decay slowly
BLOCK = 16384  # rows compared with the centres at a time; limits the memory


@final
@dataclass(frozen=True)
class TopicBatches(Sampler):
    """Topic-aware sampling (Hofstätter et al. 2021, section 3.2): the queries of a batch share a topic.

    Topics are k-means clusters of the queries' vectors, computed once. In every epoch, each topic's examples
    are shuffled and split into batches. The remainders of all topics are joined in topic order and split,
    too. Every example occurs at most once per epoch. A last incomplete batch is dropped.

    The other half of TAS-Balanced, negatives by margin, is `FromData(choose="balanced")`.

    Args:
        topics: number of topics. None for one per 200 queries.
        model: name (as for `load_model`) of the model whose pooled query vectors are clustered. None for
            tf-idf vectors of the queries' words, reduced to their 64 strongest directions.
    """

    topics: int | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        if self.topics is not None and self.topics < 1:
            raise ConfigError(f"TopicBatches: topics must be at least 1, found {self.topics}")

    def batches(self, data: TrainingSet, size: int, epoch: int, seed: int) -> Iterator[list[int]]:
        """The batches of all topics, in a new order every epoch."""
        rng = np.random.default_rng(seed_of(seed, "topic order", epoch))
        whole: list[list[int]] = []
        rest: list[int] = []
        topics = self.topics_of(data, seed)
        for topic in rng.permutation(topics.max() + 1):
            members = rng.permutation(np.flatnonzero(topics == topic)).tolist()
            full = len(members) // size * size
            whole += _cut(members[:full], size)
            rest += members[full:]
        whole += _cut(rest, size)
        for at in rng.permutation(len(whole)):
            yield whole[at]

    def topics_of(self, data: TrainingSet, seed: int) -> Int[np.ndarray, " n"]:
        """The topic of each example, from 0.

        Raises:
            ConfigError: more topics than queries, or the model has no pooled vectors.
        """
        # Cached on this object (`cached_property` takes no arguments): clustering costs more than ordering.
        key = (data.fingerprint, seed)
        known = vars(self).get("_found")
        if known is None or known[0] != key:
            queries = list(dict.fromkeys(example.query for example in data.examples))
            count = self.topics or max(1, len(queries) // QUERIES_A_TOPIC)
            if count > len(queries):
                raise ConfigError(f"TopicBatches: {count} topics of {len(queries)} queries; ask for fewer")
            vectors = self._vectors([data.queries[query] for query in queries], seed)
            found = cluster(vectors, count, seed_of(seed, "topics")).tolist()
            labels = dict(zip(queries, found, strict=True))
            known = (key, np.array([labels[example.query] for example in data.examples]))
            vars(self)["_found"] = known
        return known[1]

    def _vectors(self, texts: Sequence[str], seed: int) -> Float[np.ndarray, "n d"]:
        if self.model is None:
            return term_vectors(texts, seed_of(seed, "term vectors"))
        from counterpoint.loading import load_model

        model = load_model(self.model)
        pooled = [name for name, found in model.sets.items() if found.pooled]
        if not pooled:
            raise ConfigError(
                f"TopicBatches: {self.model} has no pooled vectors, only {', '.join(model.sets)}"
            )
        return unit_rows(model.encode_query(texts)[pooled[0]].values)


def cluster(vectors: Float[np.ndarray, "n d"], count: int, seed: int) -> Int[np.ndarray, " n"]:
    """Spherical k-means (Dhillon and Modha 2001): the cluster of each row, at most `count` of them.

    It starts from random distinct rows, and ends when no row moves or after 25 rounds. A cluster that loses
    all rows keeps its centre.

    Args:
        vectors: rows of unit length, or 0.
        count: number of clusters, at most the number of rows.
        seed: of the initial rows.
    """
    rng = np.random.default_rng(seed)
    centres = vectors[np.sort(rng.permutation(len(vectors))[:count])]
    labels = _nearest(vectors, centres)
    for _ in range(ROUNDS):
        order = np.argsort(labels, kind="stable")
        filled, starts = np.unique(labels[order], return_index=True)
        centres[filled] = unit_rows(np.add.reduceat(vectors[order], starts))
        before, labels = labels, _nearest(vectors, centres)
        if np.array_equal(before, labels):
            break
    return labels


def term_vectors(texts: Sequence[str], seed: int) -> Float[np.ndarray, "n d"]:
    """Latent semantic analysis (Deerwester et al. 1990): tf-idf vectors in their 64 strongest directions.

    The weight of a stemmed word is tf · ln(1 + (n − df + ½) / (df + ½)). Rows are scaled to unit length
    before and after the reduction. The directions are those of a randomised singular value decomposition
    (Halko et al. 2011, algorithm 5.1), exact if there are no more than 64. A text without words has the
    vector 0.
    """
    weights = _tf_idf(texts)
    rows, columns = cast(tuple[int, int], weights.shape)
    start = np.random.default_rng(seed).normal(size=(columns, min(DIM, rows, columns)))
    basis = weights @ start
    for _ in range(POWER):
        basis = weights @ (weights.T @ np.linalg.qr(basis)[0])
    basis = np.linalg.qr(basis)[0]
    left, values, _ = np.linalg.svd((weights.T @ basis).T, full_matrices=False)
    return unit_rows(basis @ left * values).astype(np.float32)


def _tf_idf(texts: Sequence[str]) -> csr_matrix:
    """One row of unit length per text, one column per word."""
    from scipy.sparse import csr_matrix

    analyzer = Analyzer("english")
    known: dict[str, int] = {}
    rows = [[known.setdefault(term, len(known)) for term in analyzer.terms(text)] for text in texts]
    offsets = np.cumsum([0, *map(len, rows)])
    columns = np.array([term for row in rows for term in row], dtype=np.int64)
    shape = (len(texts), max(1, len(known)))
    counts = csr_matrix((np.ones(len(columns)), columns, offsets), shape)
    counts.sum_duplicates()
    df = np.bincount(counts.indices, minlength=shape[1])
    weights = csr_matrix(counts.multiply(np.log1p((len(texts) - df + 0.5) / (df + 0.5))))
    lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)))
    return csr_matrix(weights.multiply(1 / np.where(lengths > 0, lengths, 1)))


def _nearest(vectors: Float[np.ndarray, "n d"], centres: Float[np.ndarray, "k d"]) -> Int[np.ndarray, " n"]:
    starts = range(0, len(vectors), BLOCK)
    return np.concatenate([(vectors[start : start + BLOCK] @ centres.T).argmax(axis=1) for start in starts])


def _cut(positions: Sequence[int], size: int) -> list[list[int]]:
    """Batches of exactly `size`. A remainder is dropped."""
    return [list(positions[start : start + size]) for start in range(0, len(positions) - size + 1, size)]
