"""Adversarial collections: replace query words in relevant documents by synonyms (RoC, figure 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import final

from counterpoint.data.collection import Collection
from counterpoint.data.wordnet import Thesaurus
from counterpoint.errors import ConfigError
from counterpoint.index.analysis import Analyzer
from counterpoint.types import Document, Qrels

__all__ = ["Adversary", "Tally", "perturb"]


@dataclass
class Tally:
    """Counts of changes, filled while documents are read.

    Attributes:
        documents: documents that are relevant to some query.
        changed: of these, those with a replaced word.
        matched: word occurrences in them that match one of their queries.
        replaced: of the matched ones, those replaced by a synonym that matches none of their queries.
        spared: of the matched ones, those that the random draw left unchanged.
    """

    documents: int = 0
    changed: int = 0
    matched: int = 0
    replaced: int = 0
    spared: int = 0


@final
class Adversary:
    """Replaces the words of relevant documents that match their queries.

    Words match as in BM25: by stem, without stop words. A document that is relevant to several queries loses
    the words it shares with any of them, because it has one text for all. A matched word is replaced by a
    synonym that no query of the document matches, from the word's most frequent sense with such a synonym.
    The seed, the document's id and the word's stem decide which one, so the order of documents does not
    matter. Case is kept: `Word`, `WORD`. The synonym is a lemma, whatever the word's form.

    Args:
        queries: texts by id.
        qrels: judgements.
        thesaurus: source of synonyms.
        seed: of the random choice of synonyms.
        relevant_from: lowest relevant grade.
        share: share of a document's matching words to replace, on average (all occurrences of a stem count as
            one). A larger share replaces the same words and others.

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
        """Replace these words in a document; a document that is relevant to no query is unchanged."""
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
    """Change the documents of a collection as they are read; queries and judgements stay the same.

    The tally is filled while the documents are consumed; each is counted once, however often it is read.
    """
    uncounted = set(adversary._terms)

    def changed(document: Document) -> Document:
        # Checking judgements against the documents is a separate pass.
        counts = tally if document.id in uncounted else Tally()
        uncounted.discard(document.id)
        return adversary.change(document, counts)

    return replace(collection, change=changed)


def _in_case(synonym: str, word: str) -> str:
    """The synonym in the word's case: all capitals, one initial capital, or as WordNet spells it."""
    if len(word) > 1 and word.isupper():
        return synonym.upper()
    return synonym[0].upper() + synonym[1:] if word[0].isupper() else synonym
