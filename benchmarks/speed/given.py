"""`Given`: a text model whose vectors were made before, so that a build does everything but encode."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from counterpoint.index import VectorSet
from counterpoint.types import Ragged


class Given:
    """Hands out vectors in the order of the documents, and those of queries by their text.

    Args:
        sets: what the index is told of each vector set.
        documents: sets of vectors, some documents at a time, in the order in which they will be indexed.
        queries: sets of vectors of one query, by its text.
        name: tells one from another.
    """

    source = None
    longest = 0

    def __init__(
        self,
        sets: Mapping[str, VectorSet],
        documents: Iterator[Mapping[str, Ragged]],
        queries: Mapping[str, Mapping[str, Ragged]],
        name: str,
    ):
        self.sets, self._queries, self._name = sets, queries, name
        self._documents = Joined(documents)

    def fingerprint(self) -> str:
        return f"given {self._name}"

    def encode_document(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        return self._documents.next(len(texts))

    def encode_query(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        return {name: Ragged.concatenate([self._queries[text][name] for text in texts]) for name in self.sets}


class Joined:
    """Sets of vectors that come some documents at a time, given out as many at a time as are asked for."""

    def __init__(self, chunks: Iterator[Mapping[str, Ragged]]):
        self._chunks, self._left, self._at = chunks, {}, 0

    def next(self, count: int) -> Mapping[str, Ragged]:
        pieces = []
        while count:
            there = len(next(iter(self._left.values()))) - self._at if self._left else 0
            if not there:
                self._left, self._at = next(self._chunks), 0
                continue
            taken = min(count, there)
            at = np.arange(self._at, self._at + taken)
            pieces.append({name: packed.take(at) for name, packed in self._left.items()})
            self._at, count = self._at + taken, count - taken
        return {name: Ragged.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def ranked_by(searcher: object, workflow: str) -> Callable[..., list[str]]:
    """What answers a query with ids, as a program asks for a run."""

    def ask(query, k):
        found = searcher.run({"": query.text}, k, workflow=workflow)
        return [name for name, _ in found[""]]

    return ask
