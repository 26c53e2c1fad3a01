"""The contribution of one term to each document's BM25 score, from counts or from stored scores."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float, Int, UInt8

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.paths import Kernels, Meter
from counterpoint.index.postings import Live, Scored, saturated
from counterpoint.index.term_files import TermFiles

__all__ = ["PARAMETERS", "ComputedScores", "Part", "StoredScores", "TermScores", "term_scores"]

PARAMETERS = "params.index.json"
"""Only folders written by bm25s have this file."""
REMEMBERED = 2**16  # terms whose frequencies are kept in memory; it must not grow with the queries
WORK = 25_000  # nanoseconds that numpy takes for a term in a part
ALL = np.zeros(0, bool)
Packed = tuple[UInt8[np.ndarray, " b"], int]
Counts = Int[np.ndarray, " n"]
Part = tuple[CheckedFolder, Live]
"""The files of a segment, and which of its documents are not deleted."""


@final
class ComputedScores:
    """Lucene's formula over the counts of all parts; idf and average length are of the whole collection.

    Computed in double precision, except idf, and rounded once: bit-identical to bm25s.

    Args:
        parts: in the order of their documents.
        k1: term-frequency saturation.
        b: document length normalisation.
        live: for each part, which of its documents are not deleted; None for all. Deleted documents are not
            counted and score nothing.
        of: the whole collection, if the parts are a shard of it; None if they are the whole.

    Attributes:
        documents: number of documents of the whole collection, without deleted ones.
        end: the position after the last document of the parts, including deleted ones.
    """

    def __init__(
        self,
        parts: Sequence[TermFiles],
        k1: float,
        b: float,
        live: Sequence[Live] = (),
        of: ComputedScores | None = None,
    ):
        self._parts, self._k1, self._b = parts, k1, b
        self._live = live or [None] * len(parts)
        self._whole = all(mask is None for mask in self._live)
        self.end = sum(part.documents for part in parts)
        lost = sum(int((~mask).sum()) for mask in self._live if mask is not None)
        self._of = of  # not itself, so that the files of an old commit are closed at once
        self.documents = self.end - lost if of is None else of.documents
        self._row = np.int32 if self.end < 2**31 else np.int64
        self._known: dict[str, int] = {}
        self._meter = Meter()

    def frequency(self, term: str) -> int:
        """The document frequency of a term."""
        if self._of is not None:
            return self._of.frequency(term)
        found = self._known.get(term)
        if found is None:
            whole, parts = self._whole, self._parts
            found = sum(part.frequency(term) for part in parts) if whole else len(self._scored(term, 1.0)[0])
            if len(self._known) < REMEMBERED:
                self._known[term] = found
        return found

    def scores(self, term: str) -> Scored:
        """The documents with a term, ascending, and the term's score in each (float32)."""
        return self._scored(term, float(self._idf(self.frequency(term))))

    def scores_of_texts(self, frequency: int, counts: Counts, lengths: Counts) -> Float[np.ndarray, " n"]:
        """The score of a term in other texts; in a text of the collection, the same to the last bit.

        Args:
            frequency: the term's document frequency.
            counts: how often each text has the term.
            lengths: how many terms each text has.
        """
        return (self.shares_of_texts(counts, lengths) * self._idf(frequency)).astype(np.float32)

    def shares_of_texts(self, counts: Counts, lengths: Counts) -> Float[np.ndarray, " n"]:
        """The saturated frequency of a term in other texts: `scores_of_texts` without idf."""
        norms = self._k1 * (1 - self._b + self._b * lengths / self._average)
        return counts / np.where(counts > 0, norms + counts, 1.0)

    def _idf(self, df: int) -> np.float32:
        return np.float32(math.log(1 + (self.documents - df + 0.5) / (df + 0.5)))

    def _scored(self, term: str, idf: float) -> Scored:
        """The documents with a term, and its score in each: idf · tf / (tf + norm)."""
        kernels, every, first = self._meter.kernels(WORK * len(self._parts)), [], 0
        for part, live, norms in zip(self._parts, self._live, self._norms, strict=True):
            packed = part.packed(term)
            if packed[1]:
                try:
                    if kernels is None:
                        rows, scores = _by_numpy(packed, norms, live, idf)
                    else:
                        rows, scores = _compiled(kernels, packed, (norms, ALL if live is None else live), idf)
                except ValueError as error:
                    raise part.damaged(error) from error
                every.append((np.add(rows, first, dtype=self._row), scores) if first else (rows, scores))
            first += part.documents
        if len(every) == 1:
            return every[0]
        rows, scores = zip((np.zeros(0, self._row), np.zeros(0, np.float32)), *every, strict=True)
        return np.concatenate(rows), np.concatenate(scores)

    @cached_property
    def _norms(self) -> list[Float[np.ndarray, " documents"]]:
        """For each part and document, the k1 term of the denominator: tf / (tf + norm)."""
        average, rest = self._average, 1 - self._b
        return [self._k1 * (rest + self._b * part.lengths / average) for part in self._parts]

    @cached_property
    def _average(self) -> float:
        """Average length of a document of the whole collection in terms; 1 if all are empty."""
        if self._of is not None:
            return self._of._average
        pairs = zip(self._parts, self._live, strict=True)
        lengths = (
            part.length if live is None else int(part.lengths[live].sum(dtype=np.int64))
            for part, live in pairs
        )
        return sum(lengths) / max(self.documents, 1) or 1.0


def _by_numpy(postings: Packed, norms: Float[np.ndarray, " d"], live: Live, idf: float) -> Scored:
    """The documents with a term in one part, and its scores."""
    rows, shares = saturated(*postings, norms, live)
    shares *= idf
    return rows.astype(np.int32), shares.astype(np.float32)


def _compiled(
    kernels: Kernels, postings: Packed, documents: tuple[np.ndarray, np.ndarray], idf: float
) -> Scored:
    """The same by a kernel, to the last bit."""
    packed, count = postings
    found = np.empty(count, np.int32), np.empty(count, np.float32)
    kept = kernels.scored(packed, count, documents, idf, found)
    if kept < 0:
        raise ValueError("they are not packed postings of this collection")
    return found if kept == count else (found[0][:kept], found[1][:kept])


@final
class StoredScores:
    """The same from scores stored by bm25s, in indexes built before `TermFiles` existed.

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

    def scores(self, term: str) -> Scored:
        """The documents with a term, ascending, and the term's score in each."""
        where = self._where(term)
        return self._rows[where], self._scores[where]

    def scores_of_texts(self, frequency: int, counts: Counts, lengths: Counts) -> Float[np.ndarray, " n"]:
        """Raise ConfigError: these files have no lengths of documents."""
        raise ConfigError(
            "this index is of an earlier version, whose BM25 cannot score other texts; build it again"
        )

    def shares_of_texts(self, counts: Counts, lengths: Counts) -> Float[np.ndarray, " n"]:
        """Raise ConfigError, as `scores_of_texts`."""
        return self.scores_of_texts(0, counts, lengths)

    def _where(self, term: str) -> slice:
        at = self._vocabulary.get(term)
        return slice(0, 0) if at is None else slice(*self._starts[at : at + 2].tolist())


TermScores = ComputedScores | StoredScores
"""The terms of a collection, and their contributions to each document's score."""


def term_scores(parts: Sequence[Part], k1: float, b: float, of: TermScores | None = None) -> TermScores:
    """Open the postings of an index, in any format; `of` is the whole collection if they are a shard's."""
    if len(parts) == 1 and PARAMETERS in parts[0][0]:
        return StoredScores(parts[0][0])
    opened = [files.once("terms", TermFiles) for files, _ in parts]
    whole = of if isinstance(of, ComputedScores) else None
    return ComputedScores(opened, k1, b, [live for _, live in parts], whole)
