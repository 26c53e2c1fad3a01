"""Adversarial collections: what documents share with their queries becomes synonyms (RoC, figure 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, final

from counterpoint.data.collection import Collection, Source
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader
from counterpoint.data.wordnet import Thesaurus
from counterpoint.errors import ConfigError
from counterpoint.index.analysis import Analyzer
from counterpoint.types import Document, Qrels

__all__ = ["Adversary", "Tally", "perturb"]


@dataclass
class Tally:
    """What was done, counted while documents are read.

    Attributes:
        documents: that are relevant to some query.
        changed: of these, those with a word replaced.
        matched: words in them, occurrence by occurrence, that match a query of theirs.
        replaced: of these, those that have a synonym which no query of theirs matches, if they are to go.
        spared: of these, those that the draw leaves as they are.
    """

    documents: int = 0
    changed: int = 0
    matched: int = 0
    replaced: int = 0
    spared: int = 0


@final
class Adversary:
    """Takes from relevant documents the words that match their queries.

    Words match as in BM25: by the stem, stop words aside. A document that is relevant to several queries
    loses what it shares with any of them, since it has one text for all. A matched word becomes one of the
    synonyms of its most frequent sense that has any which no query of the document matches; which one, the
    seed, the document's id and the word's stem decide, so that nothing depends on the order of documents.
    Case is kept: `Word`, `WORD`. The synonym is a lemma, whatever the word's form.

    Args:
        queries: texts by id.
        qrels: judgements.
        thesaurus: where synonyms are from.
        seed: another seed draws others.
        relevant_from: lowest grade that is relevant.
        share: of a document's matching words (all occurrences of a stem are one) that are to go, on average;
            a larger share takes the same words and others.

    Raises:
        ConfigError: the share is not above 0 and at most 1.
    """

    def __init__(
        self,
        queries: Mapping[str, str],
        qrels: Qrels,
        thesaurus: Thesaurus,
        seed: int = 0,
        relevant_from: int = 1,
        share: float = 1.0,
    ):
        if not 0 < share <= 1:
            raise ConfigError(f"share: must be above 0 and at most 1, found {share}")
        self.thesaurus = thesaurus
        self.seed = seed
        self.share = share
        self._analyzer = Analyzer("english")
        self._terms: dict[str, set[str]] = {}
        for query, grades in qrels.items():
            terms = self._analyzer.terms(queries[query])
            for document, grade in grades.items():
                if grade >= relevant_from:
                    self._terms.setdefault(document, set()).update(terms)

    def change(self, document: Document, tally: Tally) -> Document:
        """The document without these words; one that is relevant to no query as it is."""
        terms = self._terms.get(document.id)
        if terms is None:
            return document
        before = tally.replaced
        title, text = (self._without(t, document.id, terms, tally) for t in (document.title, document.text))
        tally.documents += 1
        tally.changed += tally.replaced > before
        return replace(document, title=title, text=text)

    def _without(self, text: str, document: str, terms: AbstractSet[str], tally: Tally) -> str:
        pieces, end = [], 0
        for term, span in self._analyzer.spans(text):
            if term not in terms:
                continue
            tally.matched += 1
            draw = hashlib.sha256(f"{self.seed}\n{document}\n{term}".encode()).digest()
            if int.from_bytes(draw[8:16], "big") >= self.share * 2**64:
                tally.spared += 1
                continue
            synonym = self._synonym(span.text.lower(), draw, terms)
            if synonym is not None:
                tally.replaced += 1
                pieces += [text[end : span.start], _in_case(synonym, span.text)]
                end = span.end
        return "".join([*pieces, text[end:]])

    def _synonym(self, word: str, draw: bytes, terms: AbstractSet[str]) -> str | None:
        for sense in self.thesaurus.synonyms(word):
            allowed = [
                name for name in sense if (found := self._analyzer.terms(name)) and found[0] not in terms
            ]
            if allowed:
                return allowed[int.from_bytes(draw[:8], "big") % len(allowed)]
        return None


def perturb(collection: Collection, adversary: Adversary, tally: Tally) -> Collection:
    """The collection with other documents, made as they are read; queries and judgements are the same.

    Args:
        collection: what is changed.
        adversary: how.
        tally: counts while the documents are consumed, each once, however often they are read.
    """
    uncounted = set(adversary._terms)
    return Collection(Perturbed(collection.source, adversary, tally, uncounted), collection.policy)


@final
@dataclass(frozen=True)
class Perturbed(Source):
    """A source whose documents an adversary changes."""

    source: Source
    adversary: Adversary
    tally: Tally
    uncounted: set[str]

    @property
    def name(self) -> str:
        """That of the source."""
        return self.source.name

    @property
    def splits(self) -> tuple[str, ...]:
        """Those of the source."""
        return self.source.splits

    @property
    def size(self) -> int | None:
        """That of the source."""
        return self.source.size

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Changed one by one."""
        for found in self.source.documents(reader):
            # Judgements may be checked against the documents, which is a pass of its own.
            tally = self.tally if found.document.id in self.uncounted else Tally()
            self.uncounted.discard(found.document.id)
            yield found._replace(document=self.adversary.change(found.document, tally))

    def queries(self, policy: ReadPolicy) -> dict[str, str]:
        """As they are."""
        return self.source.queries(policy)

    def query_metadata(self, policy: ReadPolicy) -> dict[str, dict[str, Any]]:
        """As they are."""
        return self.source.query_metadata(policy)

    def qrels(self, split: str, policy: ReadPolicy) -> dict[str, dict[str, int]]:
        """As they are."""
        return self.source.qrels(split, policy)


def _in_case(synonym: str, word: str) -> str:
    """The synonym in the word's case: capitals throughout, one in front, or as WordNet spells it."""
    if len(word) > 1 and word.isupper():
        return synonym.upper()
    return synonym[0].upper() + synonym[1:] if word[0].isupper() else synonym
