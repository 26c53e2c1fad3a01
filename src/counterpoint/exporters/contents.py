"""What an exporter reads of an index: a description, and the documents in batches."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import xxhash
from jaxtyping import Float, Int

from counterpoint.index import Index
from counterpoint.index.lexical import LexicalSettings
from counterpoint.index.where import FieldType
from counterpoint.types import Document

__all__ = ["Contents", "Row", "batches", "sparse_of", "uuid_of"]

READ = 256  # documents read at a time
FLOATS = 1_000_000  # components written at a time: about 12 MB of JSON, and Qdrant takes 32
TERM_IDS = 2**32 - 2  # numbers from 1 to this are those that both Qdrant and Milvus take


@final
@dataclass(frozen=True)
class Contents:
    """What an index has for an engine.

    Attributes:
        name: of the collection.
        fields: types of the metadata fields; those with lists are left out.
        pooled: components of each pooled set.
        several: components of each multi-vector set, without static sets.
        lexical: settings of BM25, if the index has it.
    """

    name: str
    fields: Mapping[str, FieldType]
    pooled: Mapping[str, int]
    several: Mapping[str, int]
    lexical: LexicalSettings | None

    @property
    def columns(self) -> dict[str, str]:
        """A column for each vector set."""
        return columns_of("vector_", (*self.pooled, *self.several))

    @property
    def field_columns(self) -> dict[str, str]:
        """A column for each metadata field."""
        return columns_of("metadata_", self.fields)

    @staticmethod
    def of(index: Index, name: str, *, several: bool) -> Contents:
        """Describe an index.

        Args:
            index: the index.
            name: of the collection.
            several: whether the engine has MaxSim; without it, multi-vector sets are left out.
        """
        layouts = index.layouts.items()
        multi = {n: each.dim for n, each in layouts if not each.pooled and each.kind != "static"}
        return Contents(
            name,
            {field: kind for field, kind in index.fields.items() if kind != "list"},
            {n: each.dim for n, each in layouts if each.pooled},
            multi if several else {},
            None if index.lexical is None else index.lexical.settings,
        )


@final
@dataclass(frozen=True)
class Row:
    """A document with what an engine keeps about it.

    Attributes:
        document: the document.
        pooled: its vector in each pooled set.
        several: its vectors in each multi-vector set; there may be none.
        terms: its BM25 terms, in order; None without BM25.
        weights: the saturated frequency of each term; None if the engine computes BM25 itself.
        stamp: a hash of all this. A document with the same stamp need not be written again.
    """

    document: Document
    pooled: Mapping[str, Float[np.ndarray, " d"]]
    several: Mapping[str, Float[np.ndarray, "n d"]]
    terms: Sequence[str] | None
    weights: Mapping[str, float] | None
    stamp: str

    @property
    def floats(self) -> int:
        """Number of components of all vectors."""
        return sum(x.size for vectors in (self.pooled, self.several) for x in vectors.values())

    @property
    def metadata(self) -> str:
        """The metadata as JSON."""
        return json.dumps(dict(self.document.metadata), ensure_ascii=False)

    def stored(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """What an engine stores as plain values.

        Args:
            fields: `Contents.field_columns`.
        """
        about = self.document
        found: dict[str, Any] = {"doc_id": about.id, "title": about.title, "text": about.text}
        found |= {"metadata": self.metadata, "stamp": self.stamp}
        if about.parent is not None:
            found |= {"parent": about.parent, "start": about.start}
        values = {column: about.metadata.get(name) for name, column in fields.items()}
        return found | {column: value for column, value in values.items() if value is not None}


def batches(index: Index, contents: Contents, *, weights: bool) -> Iterator[list[Row]]:
    """The documents of an index in the order of adding, a few at a time.

    Args:
        index: the index.
        contents: which sets are read.
        weights: compute the BM25 weights of terms, for engines that keep them as sparse vectors.
    """
    positions = index.positions
    for first in range(0, len(positions), READ):
        yield from _parts(_rows(index, contents, positions[first : first + READ], weights))


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in lists of at most `FLOATS` components, or of one row."""
    some: list[Row] = []
    for row in rows:
        if some and sum(each.floats for each in some) + row.floats > FLOATS:
            yield some
            some = []
        some.append(row)
    if some:
        yield some


def _rows(index: Index, contents: Contents, positions: Int[np.ndarray, " k"], weights: bool) -> Iterator[Row]:
    taken = {name: index.take(name, positions) for name in (*contents.pooled, *contents.several)}
    lexical = index.lexical
    for i, document in enumerate(index.documents_at(positions)):
        terms = None if lexical is None else lexical.terms(document.full_text)
        kept = None if lexical is None or terms is None or not weights else lexical.document_weights(terms)
        pooled = {name: taken[name][i][0] for name in contents.pooled}
        several = {name: taken[name][i] for name in contents.several}
        yield Row(document, pooled, several, terms, kept, _stamp(document, pooled | several, terms, kept))


def _stamp(document: Document, vectors: Mapping[str, np.ndarray], terms: object, weights: object) -> str:
    about = [document.id, document.title, document.text, document.parent, document.start]
    told = json.dumps([*about, dict(document.metadata), list(vectors), terms, weights])
    found = xxhash.xxh3_64(told.encode())
    for values in vectors.values():
        found.update(np.ascontiguousarray(values, np.float32).tobytes())
    return found.hexdigest()


def sparse_of(weights: Mapping[str, float]) -> tuple[list[int], list[float]]:
    """Term weights as a sparse vector: ascending 32-bit hashes of the terms, none 0, and their weights.

    Two terms with one hash become one; among a million terms, about 116 pairs have.
    """
    found: dict[int, float] = {}
    for term, weight in weights.items():
        number = xxhash.xxh3_64_intdigest(term.encode("utf-8", "surrogatepass")) % TERM_IDS + 1
        found[number] = found.get(number, 0.0) + weight
    ordered = sorted(found)
    return ordered, [found[number] for number in ordered]


def uuid_of(document_id: str) -> str:
    """The UUID of a document, for engines whose ids cannot be any text."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, document_id))


def columns_of(prefix: str, names: Iterable[str]) -> dict[str, str]:
    """A column for each name: letters, digits and underscores only, all different."""
    found: dict[str, str] = {}
    for name in names:
        column = base = prefix + re.sub(r"[^A-Za-z0-9_]", "_", name)
        number = 2
        while column in found.values():
            column, number = f"{base}_{number}", number + 1
        found[name] = column
    return found
