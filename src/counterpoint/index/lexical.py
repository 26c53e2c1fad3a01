"""BM25 postings inside the index folder, made by bm25s, with every score separable into its terms."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index.analysis import Analyzer, AnalyzerName, check_analyzer
from counterpoint.index.checked import CheckedFolder
from counterpoint.types import Span

__all__ = ["Lexical", "LexicalBuilder", "LexicalSettings", "TermMatch"]


@dataclass(frozen=True)
class LexicalSettings:
    """BM25 as Lucene computes it: idf = ln(1 + (N - df + ½) / (df + ½)), tf / (tf + k1(1 - b + b·l/avgl)).

    The defaults of k1 and b are Pyserini's.

    Args:
        k1: how late further occurrences of a term stop to count; 0: the first counts alone.
        b: how much a document's length counts, from 0 to 1.
        analyzer: how texts are cut into terms.
        identifiers: see names such as `is_empty` and `checkIfEmpty` as one term and as several; each of these
            counts, also in a document's length.

    Raises:
        ConfigError: k1 is below 0 or infinite, b not between 0 and 1, or no analyzer has that name.
    """

    k1: float = 0.9
    b: float = 0.4
    analyzer: AnalyzerName = "english"
    identifiers: bool = True

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> LexicalSettings:
        """What a manifest says; indexes older than `identifiers` are without."""
        return LexicalSettings(**{"identifiers": False, **data})

    def analyzed(self) -> Analyzer:
        """What cuts texts into terms."""
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
    """What one query term added to a document's BM25 score."""

    term: str
    query: Span
    score: float


@final
class LexicalBuilder:
    """Collect the terms of documents one by one, then write postings.

    Holds one reference (8 bytes) a term of the corpus, never the text.
    """

    def __init__(self, settings: LexicalSettings):
        self.settings = settings
        self._analyzer = settings.analyzed()
        self._vocabulary: dict[str, int] = {}
        self._documents: list[list[int]] = []

    def add(self, text: str) -> None:
        """Add the next document."""
        known = self._vocabulary
        self._documents.append([known.setdefault(term, len(known)) for term in self._analyzer.terms(text)])

    def write(self, folder: Path) -> None:
        """Write the postings of all documents into `folder`."""
        import bm25s

        bm25 = bm25s.BM25(k1=self.settings.k1, b=self.settings.b, method="lucene", backend="numpy")
        # Where no document has a term, bm25s still wants a vocabulary, and divides by the average length 0.
        with np.errstate(invalid="ignore" if not self._vocabulary else "raise"):
            bm25.index((self._documents, self._vocabulary or {"": 0}), show_progress=False)
        bm25.save(str(folder))


@final
class Lexical:
    """BM25 scores of all documents of an index.

    Args:
        files: what `LexicalBuilder.write` wrote.
        settings: those it was built with.

    Raises:
        ArtifactError: they are damaged.
    """

    def __init__(self, files: CheckedFolder, settings: LexicalSettings):
        self.settings = settings
        self._analyzer = settings.analyzed()
        try:
            given = json.loads(bytes(files.file("params.index.json").whole()))
            self._vocabulary: dict[str, int] = json.loads(bytes(files.file("vocab.index.json").whole()))
            self.documents = int(given["num_docs"])
        except (ValueError, KeyError, TypeError) as error:
            raise ArtifactError(
                f"the BM25 postings cannot be read ({error}); build the index again", path=files.folder
            ) from error
        self._starts = files.array("indptr.csc.index.npy").all()
        self._rows, self._scores = (files.array(f"{name}.csc.index.npy") for name in ("indices", "data"))

    def scores(self, query: str) -> Float[np.ndarray, " documents"]:
        """The score of every document; a term that stands twice in the query counts twice."""
        total = np.zeros(self.documents, np.float32)
        for i, _, _ in self._known_terms(query):
            rows, scores = self._postings(i)
            total[rows] += scores
        return total

    def ceiling(self, query: str) -> float:
        """The score that no document can reach: the sum of idf over the query's terms.

        It depends on the query and the collection only, so dividing by it keeps what BM25 says of a document
        independent of which other documents were found. A term that no document has counts as one with
        df = 0; an identifier that no document has counts by its pieces alone. Zero for a query without terms.
        """
        return float(self._idf(query)[1].sum())

    def known(self, query: str) -> float:
        """The share of the ceiling that is of terms which some document has, from 0 to 1."""
        df, idf = self._idf(query)
        return float(idf[df > 0].sum() / idf.sum()) if len(idf) else 0.0

    def _idf(self, query: str) -> tuple[Float[np.ndarray, " t"], Float[np.ndarray, " t"]]:
        """Document frequency and idf of the query's terms, as they count for the ceiling."""
        known = self._vocabulary
        spans = self._analyzer.spans(query)
        frequencies = [
            self._frequencies[known[term]] if term in known else 0
            for term, span in spans
            if term in known or not any(_holds(span, other) for _, other in spans)
        ]
        df = np.asarray(frequencies, dtype=np.float64)
        return df, np.log1p((self.documents - df + 0.5) / (df + 0.5))

    def matches(self, query: str, document: int) -> list[TermMatch]:
        """What each occurrence of a term in the query added to one document's score."""
        found = []
        for i, term, span in self._known_terms(query):
            rows, scores = self._postings(i)
            at = np.flatnonzero(rows == document)
            score = float(scores[at[0]]) if len(at) else 0.0
            found.append(TermMatch(term, span, score))
        return found

    def term_spans(self, text: str) -> dict[str, Span]:
        """The first place of each term in a text."""
        return {term: span for term, span in reversed(self._analyzer.spans(text))}

    def _known_terms(self, query: str) -> list[tuple[int, str, Span]]:
        known = self._vocabulary
        return [(known[term], term, span) for term, span in self._analyzer.spans(query) if term in known]

    def _postings(self, term: int) -> tuple[Int[np.ndarray, " p"], Float[np.ndarray, " p"]]:
        """The documents that have a term, each once, and its score in each."""
        where = slice(*self._starts[term : term + 2].tolist())
        return self._rows[where], self._scores[where]

    @cached_property
    def _frequencies(self) -> Int[np.ndarray, " terms"]:
        """Document frequency of each term: the length of its posting list."""
        return np.diff(self._starts)


def _holds(span: Span, other: Span) -> bool:
    """Whether another piece of the text is a part of this one."""
    return span.start <= other.start and other.end <= span.end and span != other
