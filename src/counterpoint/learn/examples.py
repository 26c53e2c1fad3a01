"""`TrainingSet`: queries, documents, and which document is the right one for which query."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from counterpoint.errors import ConfigError, DataError
from counterpoint.learn.seeds import seed_of

__all__ = ["Example", "TrainingSet"]


@dataclass(frozen=True, slots=True)
class Example:
    """One query with documents, all by id.

    Attributes:
        query: its id.
        positives: documents that answer it, one or more; one is drawn at a time.
        negatives: documents that the data set gives as negatives, in its order.
        scores: a teacher's scores, by document; empty where the data have none.
    """

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingSet:
    """What there is to learn from. Every text is held in memory once.

    Attributes:
        queries: id to text.
        documents: id to text (title and body joined, as they are encoded).
        examples: in the order of the data.
        relevant: for each query all documents known to be relevant, those of other examples too: none of
            them is ever taken for a negative.
        provenance: JSON values: files with their SHA-256, the split, how it was read.

    Raises:
        DataError: listing ids that are used and have no text; an empty text is never made up for one.
    """

    queries: Mapping[str, str]
    documents: Mapping[str, str]
    examples: tuple[Example, ...]
    relevant: Mapping[str, frozenset[str]]
    provenance: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.examples:
            raise DataError("there is no example to learn from; is this the right split?")
        unknown = [f"query {e.query!r}" for e in self.examples if e.query not in self.queries]
        unknown += [
            f"document {document!r} (of query {example.query!r})"
            for example in self.examples
            for document in (*example.positives, *example.negatives)
            if document not in self.documents
        ]
        if unknown:
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise DataError(f"the data name ids that have no text: {', '.join(unknown[:5])}{more}")
        bare = next((e.query for e in self.examples if not e.positives), None)
        if bare is not None:
            raise DataError(f"query {bare!r} has no positive document; leave it out")

    @staticmethod
    def gather(
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        examples: Iterable[Example],
        *,
        also: Mapping[str, Iterable[str]] | None = None,
        provenance: Mapping[str, object] | None = None,
    ) -> TrainingSet:
        """A set with `relevant` worked out; what every reader ends with.

        Relevant for a query are the positives of all examples whose query has the same text (up to case and
        white space), and every document that has the text of one of them under another id. Blank documents
        are taken out of the examples; examples without a query text or without a positive are left out, and
        `provenance["left_out"]` says how many.

        Args:
            queries: id to text; those of no example are dropped.
            documents: id to text.
            examples: in the order of the data.
            also: more documents that are relevant for a query, though not good enough for a positive.
            provenance: JSON values.

        Raises:
            DataError: as the class says.
        """
        kept, left_out = [], 0
        for example in examples:
            sound = _without_blank(example, documents)
            if sound.positives and queries.get(example.query, "unknown").strip():
                kept.append(sound)
            else:
                left_out += 1
        facts = {**(provenance or {}), "left_out": left_out}
        made = TrainingSet(queries, documents, tuple(kept), {}, facts)
        return replace(made, relevant=_relevance(made, also or {}))._with(kept)

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.examples)

    def relevant_to(self, example: Example) -> frozenset[str]:
        """The documents that are no negatives of an example: its positives and all known to be relevant."""
        return self.relevant.get(example.query, frozenset()).union(example.positives)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over texts, examples and relevance: equal exactly for sets that teach the same."""
        digest = hashlib.sha256()
        rows = [self.queries.items(), self.documents.items()]
        rows += [
            ((e.query, e.positives, e.negatives, dict(e.scores)) for e in self.examples),
            ((query, sorted(known)) for query, known in self.relevant.items()),
        ]
        for part in rows:
            for row in part:
                digest.update(json.dumps(row).encode() + b"\n")
            digest.update(b"\n")
        return digest.hexdigest()

    # -- smaller sets ----------------------------------------------------------------------------------

    def split(self, held: float | Collection[str], seed: int = 0) -> tuple[TrainingSet, TrainingSet]:
        """The rest to train on, and a part held out; no query text stands in both.

        Args:
            held: how many different query texts to hold out, a share of all where below 1; or ids of queries.
                Queries with one text stay together; examples of other queries that have the text of a given
                id are in neither set.
            seed: decides which are drawn.

        Raises:
            ConfigError: an id that no example has, or one side would be empty.
        """
        if isinstance(held, int | float):
            chosen = self._drawn(held, seed)
        else:
            chosen = dict.fromkeys(held)
            unknown = [query for query in chosen if query not in self.queries]
            if unknown:
                raise ConfigError(f"split: no example has the query {unknown[0]!r}")
        inside = [example for example in self.examples if example.query in chosen]
        if not inside:
            raise ConfigError("split: nothing would be held out")
        rest = self.without({query: self.queries[query] for query in chosen})
        return rest, self._with(inside, f"held out: {len(inside)} examples")

    def subset(self, n: int, seed: int = 0) -> TrainingSet:
        """`n` examples at random, in the order of the data; all documents stay.

        Raises:
            ConfigError: there are not so many.
        """
        if not 1 <= n <= len(self):
            raise ConfigError(f"subset: n must be between 1 and {len(self)}, found {n}")
        order = np.random.default_rng(seed_of(seed, "subset")).permutation(len(self))[:n]
        return self._with([self.examples[at] for at in sorted(order.tolist())], f"subset of {n}, seed {seed}")

    def without(self, queries: Mapping[str, str]) -> TrainingSet:
        """The examples that are about none of these queries (id to text): neither their ids nor their texts.

        Texts are compared up to case and white space.

        Raises:
            ConfigError: nothing would be left.
        """
        texts = {_plain(text) for text in queries.values()}
        kept = [
            example
            for example in self.examples
            if example.query not in queries and _plain(self.queries[example.query]) not in texts
        ]
        if not kept:
            raise ConfigError(
                "every example is about a query that is to be left out; nothing is left to train on"
            )
        return self._with(kept, f"without {len(self) - len(kept)} examples of {len(queries)} queries")

    def _drawn(self, held: float, seed: int) -> dict[str, None]:
        """All queries of some texts drawn at random."""
        groups = defaultdict(list)
        for query in dict.fromkeys(example.query for example in self.examples):
            groups[_plain(self.queries[query])].append(query)
        texts = list(groups)
        count = round(held * len(texts)) if held < 1 else int(held)
        if not 1 <= count < len(texts):
            raise ConfigError(f"split: cannot hold out {held} of {len(texts)} different queries")
        order = np.random.default_rng(seed_of(seed, "split")).permutation(len(texts))[:count]
        return {query: None for at in order.tolist() for query in groups[texts[at]]}

    def _with(self, examples: Sequence[Example], step: str | None = None) -> TrainingSet:
        """Other examples of this set, and only their queries."""
        used = dict.fromkeys(example.query for example in examples)
        steps = [*self.provenance.get("steps", ()), *([step] if step else [])]  # pyright: ignore
        return replace(
            self,
            queries={query: self.queries[query] for query in used},
            examples=tuple(examples),
            relevant={query: self.relevant[query] for query in used if query in self.relevant},
            provenance={**self.provenance, "steps": steps} if steps else self.provenance,
        )


def _without_blank(example: Example, documents: Mapping[str, str]) -> Example:
    """The example without documents that have only white space for a text; unknown ones stay, to be told."""
    blank = {
        document
        for document in (*example.positives, *example.negatives)
        if document in documents and not documents[document].strip()
    }
    if not blank:
        return example
    positives, negatives = (
        tuple(document for document in ids if document not in blank)
        for ids in (example.positives, example.negatives)
    )
    return replace(example, positives=positives, negatives=negatives)


def _relevance(data: TrainingSet, also: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """What is relevant for each query, through equal query texts and equal document texts."""
    known = defaultdict(set)
    for example in data.examples:
        known[_plain(data.queries[example.query])].update(example.positives, also.get(example.query, ()))
    wanted = {
        data.documents[document]
        for found in known.values()
        for document in found
        if document in data.documents
    }
    twins = defaultdict(list)
    for document, text in data.documents.items():
        if text in wanted:
            twins[text].append(document)
    for found in known.values():
        for document in tuple(found):
            found.update(twins[data.documents[document]] if document in data.documents else ())
    frozen = {text: frozenset(found) for text, found in known.items()}
    return {example.query: frozen[_plain(data.queries[example.query])] for example in data.examples}


def _plain(text: str) -> str:
    """A query text as it is compared."""
    return " ".join(text.casefold().split())
