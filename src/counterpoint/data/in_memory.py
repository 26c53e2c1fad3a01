"""A collection of documents, queries and judgements in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from counterpoint.data.collection import Collection, Source
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader
from counterpoint.types import Document, Qrels

__all__ = ["collection_of"]


@dataclass(frozen=True)
class Memory(Source):
    """Source of data that are already in memory."""

    label: str
    held: tuple[Document, ...]
    texts: Mapping[str, str]
    judged: Mapping[str, Qrels]
    facts: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """Name as given."""
        return self.label

    @property
    def splits(self) -> tuple[str, ...]:
        """The keys of the judgements."""
        return tuple(sorted(self.judged))

    @property
    def size(self) -> int:
        """Number of documents."""
        return len(self.held)

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield the documents, numbered from 1 for messages."""
        return (Located(document, self.label, number) for number, document in enumerate(self.held, 1))

    def queries(self, policy: ReadPolicy) -> dict[str, str]:
        """A copy."""
        return dict(self.texts)

    def query_metadata(self, policy: ReadPolicy) -> dict[str, dict[str, Any]]:
        """A copy."""
        return {query: dict(facts) for query, facts in self.facts.items() if facts}

    def qrels(self, split: str, policy: ReadPolicy) -> dict[str, dict[str, int]]:
        """A copy."""
        return {query: dict(grades) for query, grades in self.judged[split].items()}


def collection_of(
    documents: Iterable[Document],
    *,
    name: str = "memory",
    queries: Mapping[str, str] | None = None,
    qrels: Mapping[str, Qrels] | None = None,
    query_metadata: Mapping[str, Mapping[str, Any]] | None = None,
    policy: ReadPolicy | None = None,
) -> Collection:
    """Make a collection from documents in memory; `qrels` maps split to judgements."""
    held = Memory(name, tuple(documents), queries or {}, qrels or {}, query_metadata or {})
    return Collection(held, policy or ReadPolicy())
