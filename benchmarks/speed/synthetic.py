"""A synthetic collection of any size, mixed from real documents. Needs numpy alone.

A document has two topics, which are real documents. It takes some thirty rows of their words, more of the
first topic's. A twentieth of its words are rare ones of a long tail. Vectors are the real ones with noise
added, pooled vectors means of those of the topics with noise. A query is eight words of one document and its
pooled vector, with noise again. Documents are made when they are read, 1,000 at a time. They are the same
each time, and in a collection of any size.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from vector_files import CHUNK, Query, Stopwatch

BASE = "base.npz"
WORDS = 33  # drawn for a document; those drawn twice are dropped
SECOND = 0.3  # of its words, of the second topic
RARE, TAIL = 0.05, 10**6  # share of words that are rare, and how many of these there are
NOISE = 0.5  # length of the noise, by that of the vector
ASKED = 8  # words of a query
RARE_IDS = 2**31  # ids of rare words begin here; a hash of 32 bits is rarely among them
GROUPS, NEAR = 20, 10  # chunks that queries come from, and queries of each


@dataclass(frozen=True)
class Rows:
    """Word vectors of some documents [n, d], with offsets, ids, and the words themselves."""

    values: np.ndarray
    offsets: np.ndarray
    ids: np.ndarray
    words: list[str]


class Numbered:
    """Ids of documents that are called by their position."""

    def __init__(self, count: int):
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, position: int) -> str:
        return str(position)


class Synthetic:
    """The first documents of a synthetic collection.

    Args:
        folder: made by `engine.py synthesise`.
        documents: how many.
    """

    kinds = ("words", "pooled", "lexical")

    def __init__(self, folder: Path, documents: int):
        if documents < 1:
            raise SystemExit(f"{folder}: a synthetic collection has any size; say which with --documents")
        self.about = json.loads((folder / "about.json").read_text())
        self.documents, self.ids, self.reading = documents, Numbered(documents), Stopwatch()
        with np.load(folder / BASE) as arrays:
            self._base = dict(arrays)

    def ready(self) -> None:
        """Make the queries, so that no time that is measured includes it."""
        for model in self.about["models"]:
            self.asked(model)

    def numbers(self) -> Iterator[tuple[int, int]]:
        """Each chunk's number and how many documents it has."""
        for chunk in range(-(-self.documents // CHUNK)):
            yield chunk, min(CHUNK, self.documents - chunk * CHUNK)

    def rows(self, model: str, chunk: int, count: int) -> Rows:
        """Word vectors of a chunk by a model."""
        at, rows = self._drawn(model, chunk, count)
        with self.reading:
            values = self._of(model)["values"][at].astype(np.float32)
            return replace(rows, values=noisy(values, np.random.default_rng([2, chunk])))

    def _drawn(self, model: str, chunk: int, count: int) -> tuple[np.ndarray, Rows]:
        """The words of a chunk, without vectors, and which rows of the base they have."""
        with self.reading:
            base, rng = self._of(model), np.random.default_rng([1, chunk])
            # Draws are always of a whole chunk: they do not depend on the size of the collection.
            which, place, is_rare, tail = rng.random((4, CHUNK, WORDS))[:, :count]
            first, second = self._topics(chunk, count)
            topics = np.where(which < SECOND, second[:, None], first[:, None])
            at = base["offsets"][topics] + (place * np.diff(base["offsets"])[topics]).astype(np.int64)
            rare = np.where(is_rare < RARE, TAIL**tail, 0).astype(np.int64)
            ids = np.where(rare > 0, RARE_IDS + rare, base["ids"][at])
            owners = np.repeat(np.arange(count), WORDS)
            _, kept = np.unique(owners * 2**32 + ids.ravel(), return_index=True)
            at, rare, known = at.ravel()[kept], rare.ravel()[kept].tolist(), base["words"]
            words = [
                f"rare{named(r)}" if r else word for r, word in zip(rare, known[at].tolist(), strict=True)
            ]
            offsets = np.searchsorted(owners[kept], np.arange(count + 1))
            return at, Rows(np.zeros((0, 0)), offsets, ids.ravel()[kept], words)

    def pooled_of(self, model: str, chunk: int, count: int) -> np.ndarray:
        """Pooled vectors of a chunk by a model, of unit length."""
        with self.reading:
            first, second = self._topics(chunk, count)
            means = self._of(model)["pooled"].astype(np.float32)
            mixed = (1 - SECOND) * means[first] + SECOND * means[second]
            return unit(noisy(mixed, np.random.default_rng([3, chunk])))

    def pooled_chunks(self) -> Iterator[np.ndarray]:
        """Pooled vectors of all documents by the default model, float32 [n, d], a chunk at a time."""
        return (self.pooled_of("minilm", *of) for of in self.numbers())

    def terms(self) -> Iterator[list[str]]:
        """The words of each document."""
        for of in self.numbers():
            _, rows = self._drawn("minilm", *of)
            for a, b in zip(rows.offsets, rows.offsets[1:], strict=False):
                yield rows.words[a:b]

    def queries(self, count: int) -> list[Query]:
        """The first of some two hundred queries, with vectors of the default model."""
        made = [
            Query(name, " ".join(rows.words), rows.words, rows.values, pooled[0], rows.ids)
            for name, (rows, pooled) in self.asked("minilm").items()
        ]
        return made[:count]

    @cache  # noqa: B019 - lives as long as the process
    def asked(self, model: str) -> dict[str, tuple[Rows, np.ndarray]]:
        """By the id of the document that it comes from, a query's rows and its pooled vector [1, d]."""
        numbers, made = list(self.numbers()), []
        for group in range(GROUPS):
            chunk, there = numbers[group * len(numbers) // GROUPS]
            rows, pooled = self.rows(model, chunk, there), self.pooled_of(model, chunk, there)
            rng = np.random.default_rng([4, group])
            for at in rng.choice(there, min(NEAR, there), replace=False).tolist():
                own = np.arange(rows.offsets[at], rows.offsets[at + 1])
                some = np.sort(rng.permutation(own)[:ASKED])
                words, offsets = [rows.words[i] for i in some], np.array([0, len(some)])
                asked = Rows(noisy(rows.values[some], rng), offsets, rows.ids[some], words)
                made.append((str(chunk * CHUNK + at), (asked, unit(noisy(pooled[at : at + 1], rng)))))
        order = np.random.default_rng(5).permutation(len(made))
        return dict(made[i] for i in order)

    def qrels(self) -> dict[str, dict[str, int]]:
        """A query's one relevant document is the one that it comes from."""
        return {query.id: {query.id: 1} for query in self.queries(GROUPS * NEAR)}

    def _topics(self, chunk: int, count: int) -> np.ndarray:
        real = len(self._base["minilm.pooled"])
        return np.random.default_rng([0, chunk]).integers(0, real, (2, CHUNK))[:, :count]

    @cache  # noqa: B019 - lives as long as the process
    def _of(self, model: str) -> dict[str, np.ndarray]:
        return {
            name.partition(".")[2]: array
            for name, array in self._base.items()
            if name.startswith(f"{model}.")
        }


def noisy(vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Vectors with noise of `NOISE` times their length, brought back to the length that they had."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    noise = rng.standard_normal(vectors.shape, np.float32) * (NOISE / vectors.shape[1] ** 0.5)
    return unit(vectors + noise * lengths) * lengths


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def named(number: int) -> str:
    """A number in letters alone, since one with digits would be cut into terms."""
    letters = ""
    while number:
        number, digit = divmod(number, 26)
        letters += chr(97 + digit)
    return letters
