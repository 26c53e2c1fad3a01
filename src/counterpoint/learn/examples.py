"""`TrainingSet`: queries, documents, and the positives and negatives of each query."""

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
    """One query with its documents, all by id.

    Attributes:
        query: its id.
        positives: one or more documents that answer it. One is drawn at a time.
        negatives: documents that the data set gives as negatives, in its order.
        scores: a teacher's scores by document. Empty if the data have none.
    """

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class TrainingSet:
    """The training data. Every text is held in memory once.

    Attributes:
        queries: id to text.
        documents: id to text (title and body joined, as they are encoded).
        examples: in the order of the data.
        relevant: all documents known to be relevant to each query, including those of other examples. None of
            them is used as a negative.
        provenance: JSON values: files with their SHA-256, the split, how the data were read.

    Raises:
        DataError: ids are used that have no text (the message lists them). No text is made up for them.
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
            raise DataError(f"the data use ids without a text: {', '.join(unknown[:5])}{more}")
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
        """Build a set and work out `relevant`. Every reader of training data ends with this call.

        A query's relevant documents are the positives of all examples with the same query text (ignoring case
        and white space), and every document with the same text as one of them. Blank documents are removed.
        Examples without a query text or a positive are dropped, and `provenance["left_out"]` counts them.

        Args:
            queries: id to text. Queries without an example are dropped.
            documents: id to text.
            examples: in the order of the data.
            also: more documents that are relevant to a query, but not enough to serve as positives.
            provenance: JSON values.

        Raises:
            DataError: see the class.
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
        """The documents that are no negatives of an example: its positives and the known relevant ones."""
        return self.relevant.get(example.query, frozenset()).union(example.positives)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of texts, examples and relevance, equal for sets with the same content."""
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
        """Return a training part and a held-out part that share no query text.

        Args:
            held: number of different query texts to hold out, or their share if below 1, or query ids.
                Queries with equal texts stay together. Other queries with the text of a given id are in
                neither part.
            seed: of the random draw.

        Raises:
            ConfigError: an id that no example has, or one part would be empty.
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
        """Draw `n` examples at random, in the order of the data. All documents stay.

        Raises:
            ConfigError: `n` is below 1 or above the number of examples.
        """
        if not 1 <= n <= len(self):
            raise ConfigError(f"subset: n must be between 1 and {len(self)}, found {n}")
        order = np.random.default_rng(seed_of(seed, "subset")).permutation(len(self))[:n]
        return self._with([self.examples[at] for at in sorted(order.tolist())], f"subset of {n}, seed {seed}")

    def __repr__(self) -> str:
        sizes = f"{len(self)} examples, {len(self.queries)} queries, {len(self.documents)} documents"
        return f"TrainingSet({sizes}, provenance={dict(self.provenance)})"

    def without(self, queries: Mapping[str, str]) -> TrainingSet:
        """Drop the examples that share an id or a text with these queries (id to text).

        Texts are compared without case and white space differences.

        Raises:
            ConfigError: the queries are no mapping, or nothing would be left.
        """
        if not isinstance(queries, Mapping):
            raise ConfigError(
                f"without: expected texts by query id, as in {{'q1': ''}}, found {type(queries).__name__}"
            )
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
        """All queries whose texts are drawn for the held-out part."""
        groups = defaultdict(list)
        for query in dict.fromkeys(example.query for example in self.examples):
            groups[_plain(self.queries[query])].append(query)
        texts = list(groups)
        count = round(held * len(texts)) if held < 1 else int(held)
        if not 1 <= count < len(texts):
            fewer = f"hold out fewer (--dev-split {max(1, len(texts) // 5)}), or " if len(texts) > 1 else ""
            raise ConfigError(
                f"split: cannot hold out {held} of {len(texts)} different queries; {fewer}"
                "add judgements of other queries as a split dev (qrels/dev.tsv)"
            )
        order = np.random.default_rng(seed_of(seed, "split")).permutation(len(texts))[:count]
        return {query: None for at in order.tolist() for query in groups[texts[at]]}

    def _with(self, examples: Sequence[Example], step: str | None = None) -> TrainingSet:
        """This set with other examples, and only their queries."""
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
    """Remove documents whose text is blank. Unknown ids stay, so that they are reported."""
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
    """Relevant documents of each query, joined over equal query texts and equal document texts."""
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
    """Normalise case and white space of a query text for comparison."""
    return " ".join(text.casefold().split())
