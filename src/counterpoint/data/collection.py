"""A collection: documents that stream, queries and judgements by split; and the checks on every document."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, final

from counterpoint.data.policy import ReadPolicy, ReadReport
from counterpoint.data.reader import Located, Reader
from counterpoint.data.reading import UNREADABLE, reading
from counterpoint.errors import DataError
from counterpoint.types import Document, Qrels

__all__ = ["Collection", "Source", "collection_of"]


class Source(ABC):
    """Where a collection's data come from. One subclass a format; what it yields is not yet checked.

    What a disk or a network raises while a source is read may leave it: a `Collection` turns it into a
    `DataError` that names the source.
    """

    @property
    def origin(self) -> str:
        """What a message calls it."""
        return self.name

    @property
    def remedy(self) -> str:
        """What to do where it cannot be read."""
        return "check that it is there and that you may read it"

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What is raised where it cannot be read."""
        return UNREADABLE

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the sets of judgements, sorted."""
        return ()

    @property
    def size(self) -> int | None:
        """Number of documents where it is known without reading them."""
        return None

    @abstractmethod
    def documents(self, reader: Reader) -> Iterator[Located]:
        """All documents, in the order of the source, read anew at each call."""

    def queries(self, policy: ReadPolicy) -> dict[str, str]:
        """All queries; a source without any has none."""
        return {}

    def query_metadata(self, policy: ReadPolicy) -> dict[str, dict[str, Any]]:
        """JSON values that travel with queries, for those that have some."""
        return {}

    def qrels(self, split: str, policy: ReadPolicy) -> dict[str, dict[str, int]]:
        """The judgements of one of `splits`; a source that names splits says here what they hold."""
        raise DataError(f"{self.name}: has no judgements for the split {split!r}")


@final
@dataclass(frozen=True, slots=True)
class Collection:
    """Documents to search and, where there are any, queries and judgements.

    Nothing is read before it is asked for, and the documents are never held together: each pass reads the
    source again, remembering only 16 to 32 bytes an id (a hash, to notice duplicates: among ten million
    different ids the chance of a false alarm is three in a million).

    Example:
        >>> from counterpoint.types import Document
        >>> collection = collection_of([Document("a", "One text."), Document("b", "")], name="two")
        >>> report = ReadReport()
        >>> [document.id for document in collection.documents(report)]
        ['a', 'b']
        >>> report.summary()
        '2 documents, 1 empty'
    """

    source: Source
    policy: ReadPolicy = field(default_factory=ReadPolicy)

    @property
    def name(self) -> str:
        """A short name: that of the folder, the file or the data set."""
        return self.source.name

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the sets of judgements, sorted."""
        with self._reading():
            return self.source.splits

    @property
    def size(self) -> int | None:
        """Number of documents where it is known without reading them, else None."""
        with self._reading():
            return self.source.size

    def documents(self, report: ReadReport | None = None) -> Iterator[Document]:
        """All documents, one at a time, with different ids; call again to start again.

        Args:
            report: counts what was met, while the documents are consumed.

        Raises:
            DataError: at the first thing that the policy does not allow, or that cannot be read.
        """
        reader = Reader(self.policy, ReadReport() if report is None else report)
        seen = IdSet()
        for found in self._located(reader):
            document = _checked(found, reader)
            if document is None:
                continue
            if not seen.add(document.id):
                self._repeated(found, reader)
                continue
            reader.report.documents += 1
            reader.report.empty += not document.full_text.strip()
            yield document

    def queries(self, split: str | None = None) -> dict[str, str]:
        """Query texts by id: all of them, or those judged in a split in the order of its judgements.

        Raises:
            DataError: there is no such split, or it judges a query that has no text.
        """
        with self._reading():
            everything = self.source.queries(self.policy)
        if split is None:
            return everything
        judged = self._judgements(split)
        missing = [query for query in judged if query not in everything]
        if missing:
            raise DataError(
                f"{self.name}: split {split!r} judges {len(missing)} queries that have no text, "
                f"such as {missing[0]!r}; add them to the queries or remove their judgements"
            )
        return {query: everything[query] for query in judged}

    def query_metadata(self) -> dict[str, dict[str, Any]]:
        """JSON values that travel with queries (kind, language, source, …), for those that have some.

        Raises:
            DataError: the queries cannot be read.
        """
        with self._reading():
            return self.source.query_metadata(self.policy)

    def qrels(self, split: str) -> dict[str, dict[str, int]]:
        """Judgements of a split: query id to document id to grade, in the order of the file.

        Raises:
            DataError: there is no such split; or a judged document is not in the corpus and the policy
                says that this is an error.
        """
        judged = self._judgements(split)
        if self.policy.unknown_judged == "error":
            unknown = {document for grades in judged.values() for document in grades}
            count = len(unknown)
            unknown.difference_update(document.id for document in self.documents())
            if unknown:
                raise DataError(
                    f"{self.name}: {len(unknown)} of {count} documents judged in split {split!r} are not in "
                    f"the corpus, such as {min(unknown)!r}; complete the corpus, or keep these judgements "
                    "with ReadPolicy(unknown_judged='keep')"
                )
        return judged

    def _judgements(self, split: str) -> dict[str, dict[str, int]]:
        if split not in self.splits:
            have = ", ".join(self.splits) or "none"
            raise DataError(f"{self.name}: no judgements for a split {split!r}; it has {have}")
        with self._reading():
            return self.source.qrels(split, self.policy)

    def _located(self, reader: Reader) -> Iterator[Located]:
        with self._reading():
            yield from self.source.documents(reader)

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self.source.origin, self.source.remedy, self.source.failures)

    def _repeated(self, found: Located, reader: Reader) -> None:
        """An id for the second time: left out, or an error that says where the first one is."""
        document, path, line = found
        if self.policy.duplicates == "first":
            reader.report.duplicates += 1
            reader.report.note(f"duplicate id {document.id!r} left out", path, line)
            return
        again = self._located(Reader(self.policy))
        first = next((place for place in again if place.document.id == document.id), found)
        where = first.path if first.line is None else f"{first.path}:{first.line}"
        raise DataError(
            f"duplicate id {document.id!r}, first used at {where}; give every document its own id, or keep "
            "the first of each with ReadPolicy(duplicates='first') (`counterpoint index --lenient`)",
            path=path,
            line=line,
        )


def _checked(found: Located, reader: Reader) -> Document | None:
    """The document with a usable id and storable texts of allowed length; None if it is left out."""
    document, path, line = found
    if not document.id.strip():
        reader.reject("this document's id is blank; give every document an id", path, line)
        return None
    id_ = reader.sound(document.id, path, line)
    title = reader.sound(document.title, path, line)
    text = reader.fit(reader.sound(document.text, path, line), path, line)
    parent = document.parent and reader.sound(document.parent, path, line)
    metadata = _storable(document.metadata, reader, path, line) if document.metadata else document.metadata
    if metadata is None:
        return None
    changed = {"id": id_, "title": title, "text": text, "parent": parent, "metadata": metadata}
    if all(getattr(document, name) is value for name, value in changed.items()):
        return document
    return replace(document, **changed)


def _storable(
    metadata: Mapping[str, object], reader: Reader, path: str | Path, line: int | None
) -> Mapping[str, object] | None:
    """Metadata whose JSON can be written as UTF-8; None where they cannot be written as JSON."""
    try:
        written = json.dumps(dict(metadata), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        reader.reject(f"the metadata cannot be written as JSON ({error})", path, line)
        return None
    sound = reader.sound(written, path, line)
    return metadata if sound is written else json.loads(sound)


class IdSet:
    """The ids seen so far as 64-bit hashes in an open table, a fifth of what a set of strings takes."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._used = 0

    def add(self, id_: str) -> bool:
        """Remember an id; False if it was there already."""
        digest = blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        if not self._place(int.from_bytes(digest, "little") or 1):  # 0 marks a free slot
            return False
        self._used += 1
        if 2 * self._used > len(self._slots):
            old, self._slots = self._slots, array("Q", bytes(2 * 8 * len(self._slots)))
            for key in old:
                if key:
                    self._place(key)
        return True

    def _place(self, key: int) -> bool:
        slots, last = self._slots, len(self._slots) - 1
        at = key & last
        while slots[at]:
            if slots[at] == key:
                return False
            at = (at + 1) & last
        slots[at] = key
        return True


@dataclass(frozen=True)
class Memory(Source):
    """Data that are in memory already."""

    label: str
    held: tuple[Document, ...]
    texts: Mapping[str, str]
    judged: Mapping[str, Qrels]
    facts: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """As given."""
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
        """The documents, numbered from 1 for messages."""
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
    """A collection of documents that are in memory already; `qrels` maps split to judgements."""
    held = Memory(name, tuple(documents), queries or {}, qrels or {}, query_metadata or {})
    return Collection(held, policy or ReadPolicy())
