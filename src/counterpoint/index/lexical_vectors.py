"""BM25 as an inner product of two vectors (Lee et al. 2023, section 3.2), and their random projection.

The query's vector holds the idf of each of its terms, the document's the saturated frequency of each of its
own. Both are kept sparse, one row of one component for each term, so that their product is exact matching of
terms. A projection multiplies them by a matrix of random signs, which is never made: the signs of a term are
bits of a hash of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import final

import numpy as np
from jaxtyping import Float, Int, Int8, Shaped

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.index.kernels import idf_of
from counterpoint.index.lexical import LexicalSettings
from counterpoint.types import Ragged

__all__ = [
    "BM25Vectors",
    "TermStatistics",
    "project_terms",
    "projection_variance",
    "saturation",
    "term_id",
    "term_signs",
]

SIGNS = 2**22  # signs made at a time; bounds the memory of a projection
STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64 (Steele, Lea and Flood 2014), as are those below
MIXING = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


@final
@dataclass(frozen=True)
class TermStatistics:
    """What BM25 knows of a collection.

    Attributes:
        terms: ids of all its terms, rising; see `term_id`.
        frequencies: in how many documents each of them stands.
        documents: how many documents there are, N.
        length: terms of a document on average.
    """

    terms: Int[np.ndarray, " t"]
    frequencies: Int[np.ndarray, " t"]
    documents: int
    length: float

    def __post_init__(self) -> None:
        if self.terms.shape != self.frequencies.shape:
            raise ShapeError(f"{len(self.terms)} terms have {len(self.frequencies)} document frequencies")


@final
class BM25Vectors:
    """The two sides of BM25, of any text, by the statistics of one collection.

    ⟨query, document⟩ is the score of an index of that collection (`Lexical.scores`), as Lucene has it:
    without the constant factor k1 + 1 that the paper prints, which changes no ranking and no cosine. A term
    that the collection does not have is in no vector, so a text without a known term has no rows.

    Args:
        statistics: of the collection.
        settings: k1, b, and how texts are cut into terms.
        repeats: a term that stands twice in a query counts twice, as in the index. The paper prints idf once.
    """

    def __init__(
        self, statistics: TermStatistics, settings: LexicalSettings | None = None, *, repeats: bool = False
    ):
        self.statistics, self.settings, self.repeats = statistics, settings or LexicalSettings(), repeats
        self._analyzer = self.settings.analyzed()
        self._ids: dict[str, int] = {}
        self._idf = idf_of(statistics.frequencies, statistics.documents)

    @staticmethod
    def fit(
        documents: Iterable[str],
        settings: LexicalSettings | None = None,
        *,
        repeats: bool = False,
        on_progress: Callable[[int], object] = lambda done: None,
    ) -> BM25Vectors:
        """Count the terms of a collection.

        Args:
            documents: texts, empty ones too: they shorten the average.
            settings: as for the class.
            repeats: as for the class.
            on_progress: called with the number of texts counted.
        """
        chosen = settings or LexicalSettings()
        analyzer, counts = chosen.analyzed(), Counter[str]()
        number = length = 0
        for text in documents:
            terms = analyzer.terms(text)
            counts.update(set(terms))
            number, length = number + 1, length + len(terms)
            on_progress(number)
        ids = np.array([term_id(term) for term in counts], dtype=np.int64)
        order = np.argsort(ids)
        frequencies = np.array(list(counts.values()), dtype=np.int64)
        statistics = TermStatistics(ids[order], frequencies[order], number, length / max(number, 1))
        return BM25Vectors(statistics, chosen, repeats=repeats)

    def queries(self, texts: Sequence[str]) -> Ragged:
        """By text one row for each distinct known term, in order: its idf, and its id."""

        def weights(
            counts: Shaped[np.ndarray, " n"], places: Int[np.ndarray, " n"], length: int
        ) -> Shaped[np.ndarray, " n"]:
            return self._idf[places] * (counts if self.repeats else 1)

        return self._vectors(texts, weights)

    def documents(self, texts: Sequence[str]) -> Ragged:
        """By text one row for each distinct known term, in order: its saturated frequency, and its id."""
        settings = self.settings

        def weights(
            counts: Shaped[np.ndarray, " n"], places: Int[np.ndarray, " n"], length: int
        ) -> Shaped[np.ndarray, " n"]:
            return saturation(counts, length, self.statistics.length, settings.k1, settings.b)

        return self._vectors(texts, weights)

    def _vectors(self, texts: Sequence[str], weights: Callable[..., Shaped[np.ndarray, " n"]]) -> Ragged:
        values, ids = [], []
        for text in texts:
            terms = Counter(self._analyzer.terms(text))
            found = np.array([self._id(term) for term in terms], dtype=np.int64)
            places = np.searchsorted(self.statistics.terms, found)
            known = places < len(self.statistics.terms)
            known[known] = self.statistics.terms[places[known]] == found[known]
            counts = np.array(list(terms.values()), dtype=np.float64)
            made = weights(counts[known], places[known], terms.total())
            values.append(made.astype(np.float32)[:, None])
            ids.append(found[known])
        return Ragged.from_list(values, ids, dim=1)

    def _id(self, term: str) -> int:
        found = self._ids.get(term)
        if found is None:
            found = term_id(term)
            if len(self._ids) < 1_000_000:  # it must not grow with what is encoded
                self._ids[term] = found
        return found


def saturation(
    counts: Shaped[np.ndarray, " n"], length: int, average: float, k1: float, b: float
) -> Float[np.ndarray, " n"]:
    """BM25's tf / (tf + k1·(1 − b + b·length/average)), below 1; times k1 + 1 it is what the paper prints.

    Args:
        counts: tf, how often each term stands in the document.
        length: terms of the document.
        average: terms of a document of the collection on average.
        k1: how soon further occurrences stop to count.
        b: how much the length counts.
    """
    tf = np.asarray(counts, dtype=np.float64)
    return tf / (tf + k1 * (1 - b + b * (length / average if average else 1.0)))


def term_id(term: str) -> int:
    """A number for a term, the same everywhere and at any time: 63 bits of BLAKE2b."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little") >> 1


def term_signs(ids: Int[np.ndarray, " n"], dim: int, seed: int) -> Int8[np.ndarray, "n dim"]:
    """Rows of √dim·Aᵀ: for each term its −1 and 1, bits of a hash of term and seed.

    A counter is hashed with SplitMix64, from a start that term and seed decide, 64 signs at a time.
    """
    _check(dim, seed)
    start = _mixed(ids.astype(np.uint64) ^ _mixed(np.array([seed], dtype=np.uint64) + STEP))
    counters = np.arange(1, -(-dim // 64) + 1, dtype=np.uint64) * STEP
    words = _mixed(start[:, None] + counters).astype("<u8")
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, :dim]
    return bits.astype(np.int8) * np.int8(2) - np.int8(1)


def project_terms(packed: Ragged, dim: int, seed: int = 0) -> Float[np.ndarray, "b dim"]:
    """A·x of sparse vectors, A of Rademacher signs over √dim (Lee et al. 2023, eq. 3), float32.

    E⟨Aq, Ad⟩ = ⟨q, d⟩ over seeds. A vector without terms becomes 0. A is made for the terms that are there,
    a few thousand at a time, and dropped.

    Args:
        packed: as `BM25Vectors` makes them.
        dim: components afterwards.
        seed: decides A; queries and documents must have the same.

    Raises:
        ShapeError: the vectors have no ids, or more than one component a row.
        ConfigError: `dim` or `seed` is too small, or `seed` too large.
    """
    from scipy.sparse import csc_array  # slow to import, and a search has no use for it

    _check(dim, seed)
    if packed.ids is None or packed.dim != 1:
        raise ShapeError("a projection takes rows of one component, each with the id of its term")
    terms, columns = np.unique(packed.ids, return_inverse=True)
    rows = np.repeat(np.arange(len(packed)), packed.lengths)
    weights = csc_array((packed.values[:, 0], (rows, columns)), (len(packed), len(terms)), dtype=np.float32)
    projected = np.zeros((len(packed), dim), np.float32)
    some = max(1, SIGNS // max(dim, 1))
    for at in range(0, len(terms), some):
        signs = term_signs(terms[at : at + some], dim, seed).astype(np.float32)
        projected += weights[:, at : at + some] @ signs
    return projected / np.float32(np.sqrt(dim))


def projection_variance(q: Float[np.ndarray, " v"], d: Float[np.ndarray, " v"], dim: int) -> float:
    """Var⟨Aq, Ad⟩ over A, exactly: (‖q‖²‖d‖² + ⟨q, d⟩² − 2 Σ qᵢ²dᵢ²) / dim.

    Args:
        q: over any terms.
        d: over the same.
        dim: rows of A.
    """
    return float((q @ q * (d @ d) + (q @ d) ** 2 - 2 * np.sum(q**2 * d**2)) / dim)


def _check(dim: int, seed: int) -> None:
    if dim < 1 or not 0 <= seed < 2**64:  # the seed is hashed as 64 bits
        raise ConfigError(
            f"a projection needs dim from 1 up and seed from 0 to 2**64 - 1, found {dim} and {seed}"
        )


def _mixed(values: Shaped[np.ndarray, "*n"]) -> Shaped[np.ndarray, "*n"]:
    """The finaliser of SplitMix64: every bit of the input changes each bit of the output half of the time."""
    for shift, factor in MIXING:
        values = (values ^ (values >> np.uint64(shift))) * factor
    return values ^ (values >> np.uint64(31))
