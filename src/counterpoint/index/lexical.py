"""BM25 over the postings of an index; every score can be split into its terms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, final

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ConfigError
from counterpoint.index.analysis import Analyzer, AnalyzerName, check_analyzer
from counterpoint.index.bounded_cache import BoundedCache
from counterpoint.index.kernels import idf_of
from counterpoint.index.paths import Kernels, Meter
from counterpoint.index.score_column import ScoreColumn
from counterpoint.index.term_scores import Part, TermScores, term_scores
from counterpoint.types import Span

__all__ = ["LEXICAL", "Lexical", "LexicalSettings", "TermMatch"]

LEXICAL = "lexical"
"""Name of the BM25 part of a score; every other part is named after its vector set."""
MEMORY = 128 * 2**20
"""Size of the cache of recent terms' scores, in bytes; a posting takes 8."""
TOGETHER = 64  # queries, the batch size of a search


@dataclass(frozen=True)
class LexicalSettings:
    """BM25 as in Lucene: idf = ln(1 + (N - df + ½) / (df + ½)), tf / (tf + k1(1 - b + b·l/avgl)).

    The defaults of k1 and b are Pyserini's.

    Args:
        k1: term-frequency saturation; with 0 only the first occurrence counts.
        b: document length normalisation, from 0 to 1.
        analyzer: how texts are split into terms.
        identifiers: index names such as `is_empty` and `checkIfEmpty` both whole and in pieces. All of these
            terms count, also in a document's length.

    Raises:
        ConfigError: k1 is below 0 or infinite, b is not between 0 and 1, or the analyzer is unknown.
    """

    k1: float = 0.9
    b: float = 0.4
    analyzer: AnalyzerName = "english"
    identifiers: bool = True

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> LexicalSettings:
        """Read the settings of a manifest; indexes without `identifiers` do not use them."""
        return LexicalSettings(**{"identifiers": False, **data})

    def analyzed(self) -> Analyzer:
        """The analyzer of these settings."""
        return Analyzer(self.analyzer, self.identifiers)

    def __post_init__(self) -> None:
        faults = []
        if not 0 <= self.k1 < math.inf:
            faults.append(f"BM25: k1 must be at least 0 and finite, found {self.k1}")
        if not 0 <= self.b <= 1:
            faults.append(f"BM25: b must be between 0 and 1, found {self.b}")
        if faults:
            raise ConfigError(*faults)
        check_analyzer(self.analyzer)


@dataclass(frozen=True)
class TermMatch:
    """Contribution of one query term to a document's BM25 score."""

    term: str
    query: Span
    score: float


@final
class Lexical:
    """BM25 scores of all documents of an index.

    Args:
        parts: for each segment, the files of `LexicalBuilder.write` (of this version or an earlier one), and
            which of its documents are not deleted (None: all). Only these count in idf and in average length.
        settings: those it was built with.
        of: the whole collection, whose documents are counted, if the parts are a shard of it.

    Attributes:
        documents: number of documents, without deleted ones.

    Raises:
        ArtifactError: the files are damaged.
    """

    def __init__(self, parts: Sequence[Part], settings: LexicalSettings, of: Lexical | None = None):
        self.settings = settings
        self._analyzer = settings.analyzed()
        self._terms = term_scores(parts, settings.k1, settings.b, None if of is None else of._terms)
        self.documents = self._terms.documents
        self._kept: BoundedCache[ScoreColumn] = BoundedCache(MEMORY)
        self._meter = Meter()
        # Needed twice for each query. A cache of a method would keep the files of old commits open.
        self._idf = lru_cache(maxsize=TOGETHER)(partial(_idf_of, self._analyzer, self._terms))

    def scores(self, query: str) -> Float[np.ndarray, " documents"]:
        """The score at every position, 0 if deleted; a term repeated in the query counts each time.

        Terms are added in query order, in single precision.
        """
        total, kernels = np.zeros(self._terms.end, np.float32), self.kernels
        for term in self._analyzer.terms(query):
            self._column(term).add_to(total, kernels)
        return total

    @property
    def kernels(self) -> Kernels | None:
        """The compiled kernels, if they are loaded."""
        return self._meter.kernels(0)

    def ceiling(self, query: str) -> float:
        """Upper bound of the score: the sum of idf over the query's terms.

        It depends only on the query and the collection. So a score divided by it does not depend on which
        other documents were found. An unknown term counts with df = 0; an unknown identifier counts only by
        its pieces. 0 for a query without terms.
        """
        return float(self._idf(query)[1].sum())

    def known(self, query: str) -> float:
        """The share of the ceiling that comes from terms in the collection, from 0 to 1."""
        df, idf = self._idf(query)
        return float(idf[df > 0].sum() / idf.sum()) if len(idf) else 0.0

    def scores_of_texts(self, query: str, texts: Sequence[str]) -> Float[np.ndarray, " texts"]:
        """The scores of texts that need not be in the collection, by its idf and its average length.

        A term that no document has counts with df = 0, as in `ceiling`. A text that is in the collection gets
        the score that it has there.

        Raises:
            ConfigError: the index is of an earlier version, without lengths of documents.
        """
        counts = [Counter(self._analyzer.terms(text)) for text in texts]
        lengths = np.array([found.total() for found in counts], dtype=np.int64)
        total = np.zeros(len(texts), np.float32)
        for term, frequency in _counted(self._analyzer, self._terms, query):
            of_texts = np.array([found[term] for found in counts], dtype=np.int64)
            total += self._terms.scores_of_texts(frequency, of_texts, lengths)
        return total

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order."""
        return self._analyzer.terms(text)

    def document_weights(self, terms: Sequence[str]) -> dict[str, float]:
        """The saturated frequency of each distinct term of a text, by the collection's average length.

        The inner product with `query_weights` is the score of the text.

        Args:
            terms: of the text, as `terms` gives them.

        Raises:
            ConfigError: the index is of an earlier version, without lengths of documents.
        """
        counts = Counter(terms)
        lengths = np.full(len(counts), len(terms))
        shares = self._terms.shares_of_texts(np.array(list(counts.values()), np.int64), lengths)
        return dict(zip(counts, shares.tolist(), strict=True))

    def query_weights(self, query: str) -> dict[str, float]:
        """The idf of each term of a query that the collection has, times its occurrences in the query."""
        counts = Counter(self.terms(query))
        df = np.array([self._terms.frequency(term) for term in counts], dtype=np.float64)
        weights = np.array(list(counts.values())) * idf_of(df, self.documents)
        return {term: weight for term, weight, n in zip(counts, weights.tolist(), df, strict=True) if n}

    def matches(self, query: str, document: int) -> list[TermMatch]:
        """The contribution of each query term occurrence to one document's score."""
        return [
            TermMatch(term, span, self._column(term).score_of(document))
            for term, span in self._analyzer.spans(query)
            if self._terms.frequency(term)
        ]

    def term_spans(self, text: str) -> dict[str, Span]:
        """The first span of each term in a text."""
        return {term: span for term, span in reversed(self._analyzer.spans(text))}

    def _column(self, term: str) -> ScoreColumn:
        """What a term adds to each document's score, cached."""
        found = self._kept.get(term)
        if found is None:
            found = ScoreColumn.of(*self._terms.scores(term), self._terms.end)
            self._kept.put(term, found)
        return found


def _idf_of(
    analyzer: Analyzer, terms: TermScores, query: str
) -> tuple[Float[np.ndarray, " t"], Float[np.ndarray, " t"]]:
    """Document frequency and idf of the query terms that count for the ceiling."""
    df = np.asarray([frequency for _, frequency in _counted(analyzer, terms, query)], dtype=np.float64)
    return df, np.log1p((terms.documents - df + 0.5) / (df + 0.5))


def _counted(analyzer: Analyzer, terms: TermScores, query: str) -> list[tuple[str, int]]:
    """The query terms that count for the ceiling, with their document frequencies."""
    found = [(term, terms.frequency(term), span) for term, span in analyzer.spans(query)]
    spans = [span for _, _, span in found]
    return [
        (term, frequency)
        for term, frequency, span in found
        if frequency
        or not any(span.start <= other.start and other.end <= span.end and span != other for other in spans)
    ]
