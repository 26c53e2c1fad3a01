"""Sample and encode texts of a collection, for commands that analyse vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from counterpoint.cli.judgements import judgements_of
from counterpoint.cli.progress import counting, progress, reading
from counterpoint.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from counterpoint.data import Collection
    from counterpoint.search import Run
    from counterpoint.types import Document, Qrels, Ragged

__all__ = ["DEPTH", "Sample", "bm25_run", "drawn", "encode_texts", "sample_of", "some"]

T = TypeVar("T")
DEPTH = 100  # documents per query if BM25 gives the pairs; HIL reranks as many


@dataclass(frozen=True)
class Sample:
    """Texts of a collection by id, drawn uniformly at random.

    Attributes:
        queries: queries with different texts.
        documents: sample of all documents.
        matching: sample of the documents that belong to a query: judged relevant, or ranked first by BM25.
            Some may be in `documents`, too.
        grades: for each query, the sampled documents that belong to it, with their grades.
        split: split of the queries; None for a collection without judgements.
        retrieved: number of BM25's documents that each query is paired with; 0 for judged pairs.
    """

    queries: Mapping[str, str]
    documents: Mapping[str, str]
    matching: Mapping[str, str]
    grades: Qrels
    split: str | None
    retrieved: int = 0

    @property
    def judged(self) -> bool:
        """Whether the pairs come from judgements."""
        return self.split is not None and not self.retrieved

    @property
    def texts(self) -> dict[str, str]:
        """Every document once: `documents`, then the rest of `matching`."""
        return {**self.documents, **self.matching}

    @property
    def other(self) -> list[bool]:
        """For each of `documents`, whether it belongs to none of the queries."""
        matching = {document for grades in self.grades.values() for document in grades}
        return [document not in matching for document in self.documents]

    def pairs(self) -> list[tuple[int, int]]:
        """Positions of a query and of one of the `texts` that belong together."""
        places = {document: at for at, document in enumerate(self.texts)}
        return [
            (at, places[document])
            for at, query in enumerate(self.queries)
            for document in self.grades.get(query, {})
        ]

    def pairing(self) -> str:
        """Where the pairs come from, in words."""
        if self.judged:
            return f"judged relevant in {self.split}"
        return "best by BM25" if self.retrieved < 2 else f"BM25's first {self.retrieved} documents of a query"


def sample_of(source: str, split: str | None, size: int, seed: int, retrieved: int = 0) -> Sample:
    """Draw at most `size` texts of each kind. Documents are read once, and only the sample is kept.

    If BM25 gives the pairs, the collection is read once more to index it.

    Args:
        source: the collection.
        split: split of the queries; required if there are several and none is `test`.
        size: maximum number of each kind.
        seed: seed of the sampling.
        retrieved: pair each query with this many documents that BM25 ranks first, whatever is judged. With
            0, pair it with the documents judged relevant, or without judgements with BM25's first one.

    Raises:
        ConfigError: several splits and none is chosen.
        DataError: the collection cannot be read, or has fewer than two queries or documents.
    """
    import numpy as np

    from counterpoint.data import open_collection
    from counterpoint.measure.alignment import distinct_texts

    rng = np.random.default_rng(seed)
    collection = open_collection(source)
    judged = judgements_of(source, split, bare=False) if split or collection.splits else None
    found = collection.queries(None if judged is None else judged.split)
    texts = some(distinct_texts(found.values()), size, rng)
    ids = dict(zip(reversed(found.values()), reversed(found), strict=True))  # the first id of every text
    queries = {ids[text]: text for text in texts}
    relevant: dict[str, dict[str, int]]
    retrieved = retrieved or int(judged is None)
    if judged is None or retrieved:
        best = bm25_run(collection, queries, retrieved)
        relevant = {query: {document: 1 for document, _ in best[query]} for query in best}
    else:
        relevant = {}
        for query, grades in judged.qrels.items():
            if (owner := ids.get(found[query])) in queries:
                above = {document: grade for document, grade in grades.items() if grade > 0}
                relevant[owner] = {**relevant.get(owner, {}), **above}
    wanted = set(some(sorted({document for grades in relevant.values() for document in grades}), size, rng))
    kept, matching = _drawn(collection, wanted, size, rng)
    if len(queries) < 2 or len(kept) < 2:
        raise DataError(
            f"{source}: {len(queries)} different queries and {len(kept)} documents; at least two are needed"
        )
    there = kept.keys() | matching.keys()
    grades = {
        query: {document: grade for document, grade in found.items() if document in there}
        for query, found in relevant.items()
    }
    return Sample(queries, kept, matching, grades, None if judged is None else judged.split, retrieved)


def _drawn(
    collection: Collection, wanted: set[str], size: int, rng: np.random.Generator
) -> tuple[dict[str, str], dict[str, str]]:
    matching: dict[str, str] = {}
    with reading(collection) as documents:

        def watched() -> Iterator[Document]:
            for document in documents:
                if document.id in wanted:
                    matching[document.id] = document.full_text
                yield document

        kept = drawn(watched(), size, rng)
    return {document.id: document.full_text for document in kept}, matching


def drawn(documents: Iterable[Document], size: int, rng: np.random.Generator) -> list[Document]:
    """Draw `size` documents uniformly in one pass (all for 0); no more than these are kept in memory.

    This is algorithm R (reservoir sampling). If there are at most `size` documents, they keep their order.
    """
    kept: list[Document] = []
    for read, document in enumerate(documents):
        place = read if read < size or not size else int(rng.integers(read + 1))
        if place < size or not size:
            kept[place : place + 1] = [document]
    return kept


def bm25_run(collection: Collection, queries: Mapping[str, str], depth: int) -> Run:
    """Search the whole collection with BM25 to this depth; a query without a match gets no documents."""
    from counterpoint.index import Index, IndexSettings, LexicalSettings, build_index
    from counterpoint.search import Searcher

    with TemporaryDirectory() as folder, progress("indexing", "documents", collection.size) as update:
        build_index(
            collection.documents(), None, folder, IndexSettings(lexical=LexicalSettings()),
            overwrite=True, on_progress=update,
        )  # fmt: skip
        with Index(folder) as index:
            return Searcher(index).run(queries, depth, workflow="lexical")


def encode_texts(
    sides: Mapping[str, tuple[Callable[..., dict[str, Ragged]], Sequence[str]]],
) -> dict[str, dict[str, Ragged]]:
    """Encode the texts of each side with the method of the model given for it; vector sets by side.

    Uses float32 and one batch size, so that equal encoders make equal vectors of equal texts.
    """
    from counterpoint.encode import EncodeOptions

    with counting("encoding", "texts", sum(len(texts) for _, texts in sides.values())) as more:
        options = EncodeOptions(1024, "fp32", progress=more)
        return {name: encode(texts, options) for name, (encode, texts) in sides.items()}


def some(items: Sequence[T], size: int, rng: np.random.Generator) -> list[T]:
    """Draw at most `size` of the items; keep their order."""
    if len(items) <= size:
        return list(items)
    return [items[at] for at in sorted(rng.choice(len(items), size, replace=False).tolist())]
