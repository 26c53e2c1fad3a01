"""BM25 as an inner product of two vectors (Lee et al. 2023, section 3.2), and their random projection.

The query's vector holds the idf of its terms, the document's vector the saturated frequency of its terms.
Both are sparse: one row of one component per term. So their product is exact matching of terms. A projection
multiplies them by a matrix of random signs. The matrix is never stored: the signs of a term are bits of its
hash.
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
from counterpoint.index.rotation import STEP, mixed
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


@final
@dataclass(frozen=True)
class TermStatistics:
    """BM25's statistics of a collection.

    Attributes:
        terms: ids of all its terms, ascending; see `term_id`.
        frequencies: document frequency of each term.
        documents: number of documents, N.
        length: average number of terms per document.
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
    """BM25 vectors of queries and documents, for any text, with the statistics of one collection.

    ⟨query, document⟩ is the score of an index of that collection (`Lexical.scores`), as in Lucene. The
    paper's constant factor k1 + 1 is left out; it changes no ranking and no cosine. Unknown terms are in no
    vector, so a text without known terms has no rows.

    Args:
        statistics: of the collection.
        settings: k1, b, and how texts are split into terms.
        repeats: count a term that is repeated in a query each time, as in the index. The paper counts idf
            once.
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
            documents: texts. Empty ones count, too: they lower the average length.
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
        """For each text, one row per distinct known term, in order: its idf, and its id."""
        return self._vectors(
            texts, lambda counts, places, length: self._idf[places] * (counts if self.repeats else 1)
        )

    def documents(self, texts: Sequence[str]) -> Ragged:
        """For each text, one row per distinct known term, in order: its saturated frequency, and its id."""
        average, k1, b = self.statistics.length, self.settings.k1, self.settings.b
        return self._vectors(texts, lambda counts, places, length: saturation(counts, length, average, k1, b))

    def _vectors(self, texts: Sequence[str], weights: Callable[..., Shaped[np.ndarray, " n"]]) -> Ragged:
        """Rows of `weights(counts, places in the statistics, length of the text)`, with the terms' ids."""
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
    """BM25's tf / (tf + k1·(1 − b + b·length/average)), below 1; the paper multiplies it by k1 + 1.

    Args:
        counts: tf, number of occurrences of each term in the document.
        length: number of terms of the document.
        average: average number of terms per document of the collection.
        k1: term-frequency saturation.
        b: document length normalisation.
    """
    tf = np.asarray(counts, dtype=np.float64)
    return tf / (tf + k1 * (1 - b + b * (length / average if average else 1.0)))


def term_id(term: str) -> int:
    """A stable number for a term: 63 bits of BLAKE2b."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little") >> 1


def term_signs(ids: Int[np.ndarray, " n"], dim: int, seed: int) -> Int8[np.ndarray, "n dim"]:
    """Rows of √dim·Aᵀ: the −1 and 1 of each term, bits of a hash of term and seed.

    SplitMix64 hashes a counter, whose start depends on term and seed, 64 signs at a time.
    """
    _check(dim, seed)
    start = mixed(ids.astype(np.uint64) ^ mixed(np.array([seed], dtype=np.uint64) + STEP))
    counters = np.arange(1, -(-dim // 64) + 1, dtype=np.uint64) * STEP
    words = mixed(start[:, None] + counters).astype("<u8")
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, :dim]
    return bits.astype(np.int8) * np.int8(2) - np.int8(1)


def project_terms(packed: Ragged, dim: int, seed: int = 0) -> Float[np.ndarray, "b dim"]:
    """A·x of sparse vectors, A of Rademacher signs over √dim (Lee et al. 2023, eq. 3), float32.

    E⟨Aq, Ad⟩ = ⟨q, d⟩ over seeds. A vector without terms becomes 0. Only the columns of A for the given terms
    are made, a few thousand at a time.

    Args:
        packed: as made by `BM25Vectors`.
        dim: number of components of the result.
        seed: determines A; queries and documents need the same.

    Raises:
        ShapeError: the vectors have no ids, or more than one component per row.
        ConfigError: `dim` or `seed` is too small, or `seed` too large.
    """
    from scipy.sparse import csc_array  # slow to import, and not needed by a search

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
    """Exact Var⟨Aq, Ad⟩ over A: (‖q‖²‖d‖² + ⟨q, d⟩² − 2 Σ qᵢ²dᵢ²) / dim.

    Args:
        q: over any terms.
        d: over the same terms.
        dim: rows of A.
    """
    return float((q @ q * (d @ d) + (q @ d) ** 2 - 2 * np.sum(q**2 * d**2)) / dim)


def _check(dim: int, seed: int) -> None:
    if dim < 1 or not 0 <= seed < 2**64:  # the seed is hashed as 64 bits
        raise ConfigError(
            f"a projection needs dim from 1 up and seed from 0 to 2**64 - 1, found {dim} and {seed}"
        )
