"""A text model without a network: a word's vector comes from a seeded hash, so equal words match exactly."""

import zlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from counterpoint.index import IndexSettings, VectorSet
from counterpoint.types import Document, Ragged, Span


class Fake:
    """What an index asks of any model in addition to its vectors."""

    source = "fake"
    longest = 512

    def encode_counted(self, texts, progress=None):
        for _ in texts if progress else ():
            progress(1)
        return self.encode_document(texts), sum(len(text.split()) > self.longest for text in texts)

    def index_settings(self):
        return IndexSettings()


class HashModel(Fake):
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

    def row_ids(self, texts, name, side):
        encoded = self.encode_document(texts)[name]
        return [encoded.ids_of(i) for i in range(len(texts))]

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


class UniModel(Fake):
    """`cls`, and `words` as Uni-ColBERTer has them: of any length and sign, other ones in every text.

    Args:
        dim: components of a word's vector.
        repeats: a row for every occurrence, as sets of word-pieces have.
        dropped: words that have no row in documents, as a gate leaves them out.
    """

    def __init__(self, dim: int = 1, repeats: bool = False, dropped: Sequence[str] = ()):
        self.dim, self.repeats, self.dropped = dim, repeats, frozenset(dropped)

    @property
    def sets(self):
        return {"cls": VectorSet(8, True, False), "words": VectorSet(self.dim, False, True)}

    def fingerprint(self):
        return f"uni-{self.dim}-{self.repeats}-{sorted(self.dropped)}"

    def encode_query(self, texts: Sequence[str]):
        return self._encode(texts, frozenset())

    def encode_document(self, texts: Sequence[str]):
        return self._encode(texts, self.dropped)

    def words(self, text: str) -> list[str]:
        """A word for each row that a query would have."""
        return text.lower().split() if self.repeats else list(dict.fromkeys(text.lower().split()))

    def spans(self, texts, name, side):
        if name == "cls":
            return [[Span(text, 0, len(text))] for text in texts]
        return [self._places(text) for text in texts]

    def row_ids(self, texts, name, side):
        encoded = self.encode_query(texts)[name]
        return [encoded.ids_of(i) for i in range(len(texts))]

    def _places(self, text: str) -> list[Span]:
        found, at = [], 0
        for word in text.split():
            at = text.index(word, at)
            if self.repeats or word.lower() not in [span.text.lower() for span in found]:
                found.append(Span(word, at, at + len(word)))
            at += len(word)
        return found

    def _encode(self, texts: Sequence[str], dropped: frozenset[str]):
        kept = [[word for word in self.words(text) if word not in dropped] for text in texts]
        rows = [
            np.array([self._vector(self.dim, word, text, str(i)) for i, word in enumerate(words)])
            for words, text in zip(kept, texts, strict=True)
        ]
        ids = [np.array([zlib.crc32(word.encode()) for word in words], np.int64) for words in kept]
        cls = [self._vector(8, "", text, "")[None] for text in texts]
        return {
            "cls": Ragged.from_list(cls, dim=8),
            "words": Ragged.from_list([r.reshape(-1, self.dim) for r in rows], ids, dim=self.dim),
        }

    def _vector(self, dim: int, *what: str):
        rng = np.random.default_rng([zlib.crc32(part.encode()) for part in what])
        return rng.normal(size=dim).astype(np.float32)


class StaticModel(Fake):
    """HIL's two sets, a row for every occurrence: `l` decided by the word, `h` by its text and place as well.

    Args:
        dim: components of a vector.
        size: number of ids; words share them.
        whole: vectors of small whole numbers, whose products and sums are exact in any order.
    """

    def __init__(self, dim: int = 6, size: int = 40, whole: bool = False):
        self.dim, self.size, self.whole = dim, size, whole

    @property
    def sets(self):
        return {
            "l": VectorSet(self.dim, False, True, static=True),
            "h": VectorSet(self.dim, False, True),
        }

    def fingerprint(self):
        return f"static-{self.dim}-{self.size}-{self.whole}"

    def table(self, name):
        assert name == "l"
        return self._table

    @cached_property
    def _table(self):
        return np.stack([self._vector("l", str(number)) for number in range(self.size)])

    def encode_document(self, texts: Sequence[str]):
        words = [text.lower().split() for text in texts]
        ids = [np.array([self.id_of(word) for word in ws], np.int64) for ws in words]
        table = self.table("l")
        contextual = [
            np.array([self._vector(word, str(at), *ws) for at, word in enumerate(ws)]).reshape(-1, self.dim)
            for ws in words
        ]
        return {
            "l": Ragged.from_list([table[numbers] for numbers in ids], ids, dim=self.dim),
            "h": Ragged.from_list(contextual, ids, dim=self.dim),
        }

    encode_query = encode_document

    def spans(self, texts, name, side):
        return [UniModel(repeats=True)._places(text) for text in texts]

    def row_ids(self, texts, name, side):
        return [np.array([self.id_of(word) for word in text.lower().split()], np.int64) for text in texts]

    def id_of(self, word: str) -> int:
        return zlib.crc32(word.encode()) % self.size

    def _vector(self, *what: str):
        rng = np.random.default_rng([zlib.crc32(part.encode()) for part in what])
        made = rng.integers(-3, 4, self.dim) if self.whole else rng.normal(size=self.dim)
        return made.astype(np.float32)
