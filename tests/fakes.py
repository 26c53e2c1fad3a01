"""A text model without a network: a word's vector comes from a seeded hash, so equal words match exactly."""

import zlib
from collections.abc import Sequence

import numpy as np

from counterpoint.index import VectorSet
from counterpoint.types import Document, Ragged, Span


class HashModel:
    """Pooled set `mean` and word set `words`; a word's vector is random but fixed."""

    def __init__(self, dim: int = 16, seed: int = 0):
        self.dim, self.seed = dim, seed

    @property
    def sets(self):
        return {"mean": VectorSet(self.dim, True, False), "words": VectorSet(self.dim, False, True)}

    def fingerprint(self):
        return f"hash-{self.dim}-{self.seed}"

    def encode_document(self, texts: Sequence[str]):
        words = [list(dict.fromkeys(text.lower().split())) for text in texts]
        rows = [np.stack([self._vector(w) for w in ws]) if ws else np.zeros((0, self.dim)) for ws in words]
        means = [r.mean(0, keepdims=True) if len(r) else np.zeros((1, self.dim)) for r in rows]
        ids = [np.array([zlib.crc32(w.encode()) for w in ws], np.int64) for ws in words]
        return {
            "mean": Ragged.from_list([m.astype(np.float32) for m in means], dim=self.dim),
            "words": Ragged.from_list([r.astype(np.float32) for r in rows], ids, dim=self.dim),
        }

    encode_query = encode_document

    def spans(self, texts, name, side):
        if name == "mean":
            return [[Span(text, 0, len(text))] for text in texts]
        found = []
        for text in texts:
            places: dict[str, Span] = {}
            at = 0
            for word in text.split():
                start = text.index(word, at)
                at = start + len(word)
                places.setdefault(word.lower(), Span(word, start, at))
            found.append(list(places.values()))
        return found

    def _vector(self, word: str):
        rng = np.random.default_rng([self.seed, zlib.crc32(word.encode())])
        vector = rng.normal(size=self.dim)
        return vector / np.linalg.norm(vector)


DOCUMENTS = [
    Document("a", "the quick brown fox jumps over the lazy dog"),
    Document("b", "slow green turtles walk under a bridge", title="Turtles"),
    Document("c", ""),
    Document("d", "brown dogs and brown foxes sleep all day", metadata={"year": 1999}),
    Document("e#0", "a fox in a box", parent="e", start=0),
    Document("e#1", "the box is brown", parent="e", start=15),
]
