"""Training data whose files contain the texts: triples, triplets with columns, DPR's JSON.

They have no ids, so a text's id is its hash, and equal texts are one document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import final

from counterpoint.data import ReadPolicy
from counterpoint.learn.examples import Example, TrainingSet
from counterpoint.learn.formats.corpus import provenance_of
from counterpoint.learn.formats.ids import triples
from counterpoint.learn.formats.rows import Row, rows
from counterpoint.types import Document

__all__ = ["QUERY_COLUMNS", "read_dpr", "read_text_triples", "read_triplets"]

QUERY_COLUMNS = ("anchor", "query", "question")
NEGATIVE = re.compile(r"negative(?:_(\d+))?")


@final
@dataclass(frozen=True)
class Pool:
    """The texts read so far, by the ids from their hashes."""

    queries: dict[str, str] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)

    def example(self, query: str, positives: Iterable[str], negatives: Iterable[str]) -> Example:
        """Add an example of these texts."""
        (own,) = self._ids(self.queries, [query])
        return Example(own, self._ids(self.documents, positives), self._ids(self.documents, negatives))

    def _ids(self, known: dict[str, str], texts: Iterable[str]) -> tuple[str, ...]:
        found = {}
        for text in texts:
            id_ = blake2b(text.encode(), digest_size=12).hexdigest()
            known.setdefault(id_, text)
            found[id_] = None
        return tuple(found)


def read_text_triples(path: str | Path, policy: ReadPolicy | None = None) -> TrainingSet:
    r"""Read lines `query\tpositive\tnegative` of texts (MS MARCO's `triples.train`), one example per line.

    Raises:
        DataError: a line is not like this. The message names file and line.
    """
    path, pool, examples = Path(path), Pool(), []
    for row in triples(path, policy):
        query, positive, negative = (row.text(text) for text in row.value)
        examples.append(pool.example(query, [positive], [negative]))
    return _gathered("text-triples", [path], pool, examples)


def read_triplets(paths: Sequence[Path], policy: ReadPolicy | None = None) -> TrainingSet:
    """Read records with columns `anchor` (or `query`, `question`), `positive`, `negative`, `negative_1`, ….

    The number of negatives may be 0. Other columns are not read.

    Args:
        paths: JSON lines or Parquet.
        policy: how to handle bad input.

    Raises:
        DataError: a record is not like this. The message names file and line.
    """
    pool, examples = Pool(), []
    for row in (row for path in paths for row in rows(path, policy)):
        query, positive = row.text(row.take(*QUERY_COLUMNS)), row.text(row.take("positive"))
        numbered = [(int(m[1] or 0), m[0]) for m in map(NEGATIVE.fullmatch, row.value) if m]
        negatives = [row.text(row.value[name]) for _, name in sorted(numbered)]
        examples.append(pool.example(query, [positive], negatives))
    return _gathered("triplets", paths, pool, examples)


def read_dpr(path: str | Path, policy: ReadPolicy | None = None) -> TrainingSet:
    """Read DPR's JSON: `question`, `positive_ctxs`, `hard_negative_ctxs`, `negative_ctxs` of title and text.

    The hard negatives come first, then the others. A `.json` list is read whole, and messages count its items
    as lines.

    Raises:
        DataError: a record is not like this. The message names file and line.
    """
    path, pool, examples = Path(path), Pool(), []
    for row in rows(path, policy):
        question, positives = row.text(row.take("question")), _passages(row, row.take("positive_ctxs"))
        negatives = [
            text
            for key in ("hard_negative_ctxs", "negative_ctxs")
            for text in _passages(row, row.value.get(key, []))
        ]
        examples.append(pool.example(question, positives, negatives))
    return _gathered("dpr", [path], pool, examples)


def _passages(row: Row, value: object) -> list[str]:
    found = []
    for passage in row.items(value):
        if not isinstance(passage, Mapping):
            raise row.fault(
                f"a passage must be an object with title and text, found {type(passage).__name__}"
            )
        inner = Row(passage, row.path, row.line)
        title = inner.text(passage.get("title") or "")
        found.append(Document("", inner.text(inner.take("text")), title).full_text)
    return found


def _gathered(format: str, paths: Sequence[Path], pool: Pool, examples: Sequence[Example]) -> TrainingSet:
    facts = provenance_of(format, paths[0], paths)
    return TrainingSet.gather(pool.queries, pool.documents, examples, provenance=facts)
