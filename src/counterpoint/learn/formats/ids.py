"""Training data whose files contain ids: collections, triples, n-way lists, distillation sets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from counterpoint.data import ReadPolicy, open_collection
from counterpoint.data.output import write_lines
from counterpoint.data.reader import strict_reader
from counterpoint.errors import DataError
from counterpoint.learn.examples import Example, TrainingSet
from counterpoint.learn.formats.corpus import Corpus, Place, files_in, provenance_of, read_corpus
from counterpoint.learn.formats.rows import Row, rows, shards

__all__ = [
    "read_collection",
    "read_distillation",
    "read_distillation_folder",
    "read_id_triples",
    "read_n_way",
    "triples",
    "write_n_way",
]


def read_collection(
    source: str | Path, split: str = "train", *, relevant_from: int = 1, policy: ReadPolicy | None = None
) -> TrainingSet:
    """Read the judgements of a split: one example per query that has a positive.

    Documents with the grade `relevant_from` or above are positives, those with grade 0 or below are negatives
    of the data. Documents with a grade in between are neither, and are never drawn as negatives.

    Raises:
        DataError: there is no such split, or a judged document or query has no text.
    """
    collection = open_collection(source, policy=policy, passage_words=None)
    queries, judged = collection.queries(split), collection.qrels(split)
    documents = {document.id: document.full_text for document in collection.documents()}
    missing = [(query, d) for query, grades in judged.items() for d in grades if d not in documents]
    if missing:
        raise DataError(
            f"{source}: split {split!r} judges {len(missing)} documents that are not in the corpus, such as "
            f"{missing[0][1]!r} for query {missing[0][0]!r}; complete the corpus or remove their judgements"
        )
    examples = [
        Example(
            query,
            tuple(document for document, grade in grades.items() if grade >= relevant_from),
            tuple(document for document, grade in grades.items() if grade <= 0),
        )
        for query, grades in judged.items()
    ]
    also = {query: [d for d, grade in grades.items() if grade > 0] for query, grades in judged.items()}
    files = [*files_in(source), *sorted(Path(source).glob(f"qrels/{split}.tsv*"))]
    facts = provenance_of("collection", source, files, split=split, relevant_from=relevant_from)
    return TrainingSet.gather(queries, documents, examples, also=also, provenance=facts)


def read_id_triples(
    path: str | Path, documents: Place, queries: Place | None = None, policy: ReadPolicy | None = None
) -> TrainingSet:
    r"""Read lines `query\tpositive\tnegative` of ids (MS MARCO's `qidpidtriples`), one example per line.

    Args:
        path: the triples.
        documents: the documents' texts, as for `read_corpus`.
        queries: the queries' texts, if they are elsewhere.
        policy: how to handle bad input.

    Raises:
        DataError: an id has no text. The message names file and line.
    """
    path = Path(path)
    corpus = read_corpus(documents, queries, policy)

    def examples() -> Iterator[Example]:
        for row in triples(path, policy):
            query, positive, negative = row.value
            yield Example(
                corpus.query(query, row), (corpus.document(positive, row),), (corpus.document(negative, row),)
            )

    return _gathered("id-triples", path, corpus, examples())


def read_n_way(
    path: str | Path, documents: Place, queries: Place | None = None, policy: ReadPolicy | None = None
) -> TrainingSet:
    """Read ColBERT's n-way lists: each line is `[query, positive, negative, …]`, by ids.

    In ColBERTv2's distillation every document comes with a teacher's score, `[query, [id, score], …]`. The
    first document is the positive. If a document occurs twice in a line, its first occurrence counts.

    Args:
        path: JSON lines.
        documents: the documents' texts, as for `read_corpus`.
        queries: the queries' texts, if they are elsewhere.
        policy: how to handle bad input.

    Raises:
        DataError: a line is not such a list. The message names file and line.
    """
    path = Path(path)
    corpus = read_corpus(documents, queries, policy)

    def examples() -> Iterator[Example]:
        for row in rows(path, policy):
            query, *entries = row.items(row.value) or [None]
            if not entries:
                raise row.fault("a line must hold a query and its documents, the positive first")
            scored = isinstance(entries[0], list)
            if any(isinstance(entry, list) != scored or scored and len(entry) != 2 for entry in entries):
                raise row.fault("every document must be an id, or every document an [id, score]")
            ids = [corpus.document(entry[0] if scored else entry, row) for entry in entries]
            scores = [row.number(score) for _, score in entries] if scored else []
            yield _example(corpus.query(query, row), ids, scores)

    return _gathered("n-way", path, corpus, examples())


def read_distillation(
    paths: Sequence[Path], documents: Place, queries: Place | None = None, policy: ReadPolicy | None = None
) -> TrainingSet:
    """Read records `query_id, document_ids, scores`: a teacher's scores of a query's documents.

    The records do not say which document is relevant, so the one with the highest score is the positive.

    Args:
        paths: JSON lines or Parquet.
        documents: the documents' texts, as for `read_corpus`.
        queries: the queries' texts, if they are elsewhere.
        policy: how to handle bad input.

    Raises:
        DataError: a record is not like this. The message names file and line.
    """
    corpus = read_corpus(documents, queries, policy)

    def examples() -> Iterator[Example]:
        for row in (row for path in paths for row in rows(path, policy)):
            entries, scores = row.items(row.take("document_ids")), row.items(row.take("scores"))
            if len(entries) != len(scores) or not entries:
                raise row.fault(f"{len(entries)} documents and {len(scores)} scores; numbers must be equal")
            pairs = [(corpus.document(e, row), row.number(s)) for e, s in zip(entries, scores, strict=True)]
            pairs.sort(key=lambda pair: -pair[1])
            yield _example(
                corpus.query(row.take("query_id"), row), [id_ for id_, _ in pairs], [s for _, s in pairs]
            )

    return _gathered("distillation", paths[0], corpus, examples(), paths)


def read_distillation_folder(
    folder: str | Path, split: str = "train", policy: ReadPolicy | None = None
) -> TrainingSet:
    """Read a distillation set in the hub's layout: Parquet parts `train`, `queries` and `documents`.

    Raises:
        DataError: a part is missing, or an error of `read_distillation`.
    """
    folder = Path(folder)
    paths = {part: shards(folder, part) for part in (split, "queries", "documents")}
    missing = [part for part, found in paths.items() if not found]
    if missing:
        raise DataError(f"no files of the part {missing[0]!r} in this folder", path=folder)
    return read_distillation(paths[split], paths["documents"], paths["queries"], policy)


def triples(path: Path, policy: ReadPolicy | None) -> Iterator[Row]:
    """Yield the three tab-separated columns of each line. A first line of column names is skipped."""
    for number, line in strict_reader(policy or ReadPolicy()).lines(path):
        if not line or line.isspace():
            continue
        columns = line.split("\t")
        row = Row(columns, path, number)
        if len(columns) != 3:
            raise row.fault(
                f"expected query, positive and negative between tabs, found {len(columns)} columns"
            )
        if number > 1 or columns != ["query", "positive", "negative"]:
            yield row


def write_n_way(
    path: str | Path, lists: Iterable[tuple[str, Sequence[str] | Sequence[tuple[str, float]]]]
) -> None:
    """Write `[query, positive, negative, …]` lines of ids, or of ids with scores, as `read_n_way` reads them.

    Raises:
        ArtifactError: the file could not be written. An existing file is then unchanged.
    """
    write_lines(
        Path(path), (json.dumps([query, *ids], ensure_ascii=False, allow_nan=False) for query, ids in lists)
    )


def _example(query: str, ids: Sequence[str], scores: Sequence[float]) -> Example:
    """The first document as the positive, the others as negatives, each once."""
    first, *others = dict.fromkeys(ids)
    known: dict[str, float] = {}
    for id_, score in zip(ids, scores, strict=False):
        known.setdefault(id_, score)
    return Example(query, (first,), tuple(others), known)


def _gathered(
    format: str, source: Path, corpus: Corpus, examples: Iterable[Example], files: Sequence[Path] = ()
) -> TrainingSet:
    facts = provenance_of(format, source, [*(files or [source]), *corpus.files])
    return TrainingSet.gather(corpus.queries, corpus.documents, examples, provenance=facts)
