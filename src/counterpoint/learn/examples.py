"""`TrainingSet`: queries, documents, and which document is the right one for which query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from counterpoint.errors import DataError

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
    """What there is to learn from.

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

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.examples)
