"""The vectors, terms and queries that every system of `engine.py` is given. Needs numpy alone.

A folder holds `docs-0000.npz`, `docs-0001.npz`, … with 1,000 documents each: `values` (float16, a row a
token), `offsets` (where each document begins, and the end) and `ids`. Next to them stand `terms.jsonl`, a
list of BM25 terms a document, `queries.json`, `queries.npz` and `about.json`. A folder of a synthetic
collection has `base.npz` in place of documents (see `synthetic.py`).
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

CHUNK = 1000  # documents a file


@dataclass(frozen=True)
class Query:
    """One query: its row vectors [m, d] and pooled vector [d] (float32), and the terms that BM25 is asked.

    Of a synthetic collection row vectors have ids of words [m].
    """

    id: str
    text: str
    terms: list[str]
    tokens: np.ndarray
    pooled: np.ndarray
    words: np.ndarray | None = None


@dataclass(frozen=True)
class Chunk:
    """Documents that follow one another: row vectors [n, d] with offsets, and a pooled vector [d] each."""

    ids: list[str]
    values: np.ndarray
    offsets: np.ndarray

    @property
    def sets(self) -> list[np.ndarray]:
        return [self.values[a:b] for a, b in zip(self.offsets, self.offsets[1:], strict=False)]

    @cached_property
    def pooled(self) -> np.ndarray:
        return np.stack([mean_of(rows) for rows in self.sets])

    def first(self, count: int) -> "Chunk":
        end = self.offsets[count]
        return Chunk(self.ids[:count], self.values[:end], self.offsets[: count + 1])


class Stopwatch:
    """CPU and wall seconds spent within `with` blocks."""

    def __init__(self) -> None:
        self.spent = [0.0, 0.0]

    def __enter__(self) -> None:
        self._started = time.process_time(), time.perf_counter()

    def __exit__(self, *error: object) -> None:
        cpu, wall = self._started
        self.spent[0] += time.process_time() - cpu
        self.spent[1] += time.perf_counter() - wall


class TokenFiles:
    """The first documents of a folder.

    Args:
        folder: made by `engine.py prepare`.
        documents: how many; 0 for all that are there.
    """

    kinds = ("encoding", "texts", "tokens", "pooled", "lexical")

    def __init__(self, folder: Path, documents: int = 0):
        self.folder, self.reading = Path(folder), Stopwatch()
        self.about = json.loads((self.folder / "about.json").read_text())
        there = self._there()
        if documents > there:
            raise SystemExit(
                f"{folder}: {documents:,} documents were asked for, found {there:,}; prepare them"
            )
        self.documents = documents or there

    def chunks(self) -> Iterator[Chunk]:
        """All documents, a file at a time."""
        left = self.documents
        for path in self._paths():
            if left <= 0:
                return
            with self.reading:
                chunk = read_chunk(path)
            yield chunk if len(chunk.ids) <= left else chunk.first(left)
            left -= len(chunk.ids)

    def ready(self) -> None:
        """Read what answers are named by, so that no time that is measured includes it."""
        self.ids  # noqa: B018

    @cached_property
    def vectors(self) -> int:
        """Row vectors of all documents."""
        return sum(len(chunk.values) for chunk in self.chunks())

    @cached_property
    def ids(self) -> list[str]:
        """Ids of all documents, by position."""
        return [name for chunk in self.chunks() for name in chunk.ids]

    def pooled_chunks(self) -> Iterator[np.ndarray]:
        """Pooled vectors of all documents, float32 [n, d], a file at a time."""
        return (chunk.pooled for chunk in self.chunks())

    def terms(self) -> Iterator[list[str]]:
        """The terms of each document."""
        with (self.folder / "terms.jsonl").open() as lines:
            yield from map(json.loads, islice(lines, self.documents))

    def queries(self, count: int) -> list[Query]:
        """The first queries; those whose relevant documents are there come before others."""
        asked, made = json.loads((self.folder / "queries.json").read_text()), []
        with np.load(self.folder / "queries.npz") as arrays:
            values, offsets = arrays["values"].astype(np.float32), arrays["offsets"]
        there, qrels = set(self.ids), self.about["qrels"]
        for i, each in enumerate(asked):
            rows = values[offsets[i] : offsets[i + 1]]
            made.append(Query(each["id"], each["text"], each["terms"], rows, mean_of(rows)))
        return sorted(made, key=lambda query: there.isdisjoint(qrels.get(query.id, ())))[:count]

    def qrels(self) -> dict[str, dict[str, int]]:
        """Judgements of documents that are there, for queries that have one."""
        there = set(self.ids)
        kept = {
            q: {d: grade for d, grade in by.items() if d in there} for q, by in self.about["qrels"].items()
        }
        return {q: by for q, by in kept.items() if by}

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob("docs-????.npz"))

    def _there(self) -> int:
        paths = self._paths()
        if not paths:
            raise SystemExit(f"{self.folder}: no docs-0000.npz; make it with engine.py prepare")
        with np.load(paths[-1]) as last:
            return CHUNK * (len(paths) - 1) + len(last["ids"])


def read_chunk(path: Path) -> Chunk:
    with np.load(path) as arrays:
        return Chunk(arrays["ids"].tolist(), arrays["values"], arrays["offsets"])


def mean_of(rows: np.ndarray) -> np.ndarray:
    """The mean of row vectors, brought to unit length."""
    mean = rows.astype(np.float32).mean(axis=0) if len(rows) else np.zeros(rows.shape[1], np.float32)
    return mean / max(float(np.linalg.norm(mean)), 1e-12)
