"""The contribution of one term to each document's BM25 score, from counts or from stored scores."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, partial
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.term_files import TermFiles

__all__ = ["PARAMETERS", "ComputedScores", "Part", "StoredScores", "TermScores", "term_scores"]

PARAMETERS = "params.index.json"
"""Only folders written by bm25s have this file."""
REMEMBERED = 2**16  # terms whose frequencies are cached; the cache must not grow with the queries
Live = Bool[np.ndarray, " n"] | None


class TermScores(ABC):
    """The terms of a collection, and their contributions to each document's score.

    Attributes:
        documents: number of documents, without deleted ones.
        end: the position after the last document, including deleted ones.
    """

    documents: int
    end: int

    @abstractmethod
    def frequency(self, term: str) -> int:
        """The document frequency of a term."""

    @abstractmethod
    def scores(self, term: str) -> tuple[Int[np.ndarray, " p"], Float[np.ndarray, " p"]]:
        """The documents with a term, ascending, and the term's score in each (float32)."""


Part = tuple[CheckedFolder, Live]
"""The files of a segment, and which of its documents are not deleted."""


def term_scores(parts: Sequence[Part], k1: float, b: float) -> TermScores:
    """Open the postings of an index, in any format."""
    if len(parts) == 1 and PARAMETERS in parts[0][0]:
        return StoredScores(parts[0][0])
    opened = [files.once("terms", partial(TermFiles, files)) for files, _ in parts]
    return ComputedScores(opened, k1, b, [live for _, live in parts])


@final
class ComputedScores(TermScores):
    """Lucene's formula over the counts of all parts; idf and average length are of the whole collection.

    Computed in double precision, except idf, and rounded once: bit-identical to bm25s.

    Args:
        parts: in the order of their documents.
        k1: term-frequency saturation.
        b: document length normalisation.
        live: for each part, which of its documents are not deleted; None for all. Deleted documents are not
            counted and score nothing.
    """

    def __init__(self, parts: Sequence[TermFiles], k1: float, b: float, live: Sequence[Live] = ()):
        self._parts, self._k1, self._b = parts, k1, b
        self._live = live or [None] * len(parts)
        self.end = sum(part.documents for part in parts)
        lost = sum(int((~mask).sum()) for mask in self._live if mask is not None)
        self.documents = self.end - lost
        self._row = np.int32 if self.end < 2**31 else np.int64
        self._known: dict[str, int] = {}

    def frequency(self, term: str) -> int:
        """The document frequency of a term."""
        if term not in self._known:
            pairs = zip(self._parts, self._live, strict=True)
            found = sum(_frequency(part, mask, term) for part, mask in pairs)
            if len(self._known) >= REMEMBERED:
                return found
            self._known[term] = found
        return self._known[term]

    def scores(self, term: str) -> tuple[Int[np.ndarray, " p"], Float[np.ndarray, " p"]]:
        """The documents with a term, ascending, and the term's score in each."""
        df = self.frequency(term)
        idf = np.float32(math.log(1 + (self.documents - df + 0.5) / (df + 0.5)))
        rows, scores, first = [], [], 0
        for part, mask, norms in zip(self._parts, self._live, self._norms, strict=True):
            found, counts = part.postings(term)
            if mask is not None:
                kept = mask[found]
                found, counts = found[kept], counts[kept]
            own = norms[found]  # changed in place, as allocating arrays costs as much as the sums
            own += counts
            np.divide(counts, own, out=own)
            own *= idf
            found += first
            rows.append(found.astype(self._row))
            scores.append(own.astype(np.float32))
            first += part.documents
        return (rows[0], scores[0]) if len(rows) == 1 else (np.concatenate(rows), np.concatenate(scores))

    @cached_property
    def _norms(self) -> list[Float[np.ndarray, " documents"]]:
        """For each part and document, the k1 term of the denominator: tf / (tf + norm)."""
        pairs = zip(self._parts, self._live, strict=True)
        average = sum(_length(part, mask) for part, mask in pairs) / max(self.documents, 1)
        rest = 1 - self._b
        return [self._k1 * (rest + self._b * part.lengths / (average or 1.0)) for part in self._parts]


def _frequency(part: TermFiles, live: Live, term: str) -> int:
    return part.frequency(term) if live is None else int(live[part.postings(term)[0]].sum())


def _length(part: TermFiles, live: Live) -> int:
    return part.length if live is None else int(part.lengths[live].sum(dtype=np.int64))


@final
class StoredScores(TermScores):
    """Scores stored by bm25s, in indexes built before `TermFiles` existed.

    Raises:
        ArtifactError: the files are damaged.
    """

    def __init__(self, files: CheckedFolder):
        try:
            given = json.loads(bytes(files.file(PARAMETERS).whole()))
            self._vocabulary: dict[str, int] = json.loads(bytes(files.file("vocab.index.json").whole()))
            self.documents = self.end = int(given["num_docs"])
        except (ValueError, KeyError, TypeError) as error:
            raise ArtifactError(
                f"the BM25 postings cannot be read ({error}); build the index again", path=files.folder
            ) from error
        self._starts = files.array("indptr.csc.index.npy").all()
        self._rows, self._scores = (files.array(f"{name}.csc.index.npy") for name in ("indices", "data"))

    def frequency(self, term: str) -> int:
        """The document frequency of a term."""
        where = self._where(term)
        return where.stop - where.start

    def scores(self, term: str) -> tuple[Int[np.ndarray, " p"], Float[np.ndarray, " p"]]:
        """The documents with a term, ascending, and the term's score in each."""
        where = self._where(term)
        return self._rows[where], self._scores[where]

    def _where(self, term: str) -> slice:
        at = self._vocabulary.get(term)
        return slice(0, 0) if at is None else slice(*self._starts[at : at + 2].tolist())
