"""`Collection`: streamed documents, queries and judgements by split, with checks on every document."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from counterpoint.data.id_set import IdSet
from counterpoint.data.policy import ReadPolicy, ReadReport
from counterpoint.data.reader import Located, Reader
from counterpoint.data.reading import UNREADABLE, reading
from counterpoint.errors import DataError
from counterpoint.types import Document

__all__ = ["Collection", "Source"]


class Source(ABC):
    """Abstract base: where a collection's data come from, one subclass per format.

    Its output is not checked yet. A source may raise the errors of a disk or a network. `Collection` turns
    them into a `DataError` that names the source.
    """

    @property
    def origin(self) -> str:
        """Name of the source in messages."""
        return self.name

    @property
    def remedy(self) -> str:
        """Remedy to suggest if the source cannot be read."""
        return "check that it is there and that you may read it"

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Exceptions that mean that the source cannot be read."""
        return UNREADABLE

    @property
    def forgiving(self) -> bool:
        """Whether unreadable items are skipped and listed, unless the policy says otherwise."""
        return False

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that have judgements, sorted."""
        return ()

    @property
    def size(self) -> int | None:
        """Number of documents if it is known without reading them."""
        return None

    def decided(self, policy: ReadPolicy) -> tuple[str, ...]:
        """Decisions about the source made from its beginning, such as which column holds the text.

        Raises:
            DataError: it cannot be read.
        """
        return ()

    @abstractmethod
    def documents(self, reader: Reader) -> Iterator[Located]:
        """Read all documents in the order of the source; each call reads again."""

    def queries(self, policy: ReadPolicy) -> dict[str, str]:
        """Read all queries; empty if the source has none."""
        return {}

    def query_metadata(self, policy: ReadPolicy) -> dict[str, dict[str, Any]]:
        """JSON metadata of the queries that have some."""
        return {}

    def qrels(self, split: str, policy: ReadPolicy) -> dict[str, dict[str, int]]:
        """Read the judgements of one of `splits`; sources with splits override this."""
        raise DataError(f"{self.name}: has no judgements for the split {split!r}")


@final
@dataclass(frozen=True, slots=True)
class Collection:
    """Documents to search and, optionally, queries and judgements.

    Nothing is read before you ask for it. Documents are streamed: each pass reads the source again and keeps
    only 16 to 32 bytes per id in memory, a hash that detects duplicates. Among ten million different ids, the
    chance of a false alarm is three in a million.

    Attributes:
        source: where the data come from.
        policy: what happens to data that cannot be used.
        change: applied to every document of the source before it is checked; None for no change.

    Example:
        >>> from counterpoint.data import collection_of
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
    change: Callable[[Document], Document] | None = None

    @property
    def name(self) -> str:
        """Short name: that of the folder, the file or the data set."""
        return self.source.name

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that have judgements, sorted."""
        with self._reading():
            return self.source.splits

    @property
    def size(self) -> int | None:
        """Number of documents if it is known without reading them, else None."""
        with self._reading():
            return self.source.size

    def decided(self) -> tuple[str, ...]:
        """Decisions about the source made from its beginning, such as which column holds the text.

        Raises:
            DataError: it cannot be read.
        """
        with self._reading():
            return self.source.decided(self._policy)

    def documents(self, report: ReadReport | None = None) -> Iterator[Document]:
        """Stream all documents, with unique ids; call again to start again.

        Args:
            report: filled with counts while the documents are consumed.

        Raises:
            DataError: at the first item that the policy does not allow or that cannot be read.
        """
        reader = Reader(self._policy, ReadReport() if report is None else report)
        seen, last = IdSet(), None
        for found in self._located(reader):
            document = self._usable(found, reader)
            if document is None:
                continue
            if not seen.add(document.id):
                self._repeated(found, reader)
                continue
            last = reader.report.count(document, last)
            yield document

    @property
    def _policy(self) -> ReadPolicy:
        """The reading policy; for a folder of files it skips errors unless told otherwise."""
        if not self._forgiving:
            return self.policy
        return replace(self.policy, malformed="skip", duplicates="first")

    @property
    def _forgiving(self) -> bool:
        return self.source.forgiving and self.policy.files == "skip"

    def _usable(self, found: Located, reader: Reader) -> Document | None:
        try:
            return _checked(found, reader)
        except DataError as error:
            if not self._forgiving:
                raise
            reader.skip(error)
            return None

    def queries(self, split: str | None = None) -> dict[str, str]:
        """Query texts by id: all of them, or those judged in a split, in the order of its judgements.

        Raises:
            DataError: there is no such split, or it judges a query without a text.
        """
        with self._reading():
            everything = self.source.queries(self.policy)
        if split is None:
            return everything
        judged = self._judgements(split)
        if missing := [query for query in judged if query not in everything]:
            raise DataError(
                f"{self.name}: split {split!r} judges {len(missing)} queries that have no text, "
                f"such as {missing[0]!r}; add them to the queries or remove their judgements"
            )
        return {query: everything[query] for query in judged}

    def query_metadata(self) -> dict[str, dict[str, Any]]:
        """JSON metadata of the queries that have some (kind, language, source, …).

        Raises:
            DataError: the queries cannot be read.
        """
        with self._reading():
            return self.source.query_metadata(self.policy)

    def qrels(self, split: str) -> dict[str, dict[str, int]]:
        """Judgements of a split: query id to document id to grade, in the order of the file.

        Raises:
            DataError: there is no such split, or the corpus lacks a judged document and the policy forbids
                this.
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
            for found in self.source.documents(reader):
                yield found if self.change is None else found._replace(document=self.change(found.document))

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self.source.origin, self.source.remedy, self.source.failures)

    def _repeated(self, found: Located, reader: Reader) -> None:
        """Handle a duplicate id: skip it, or raise an error that says where the first one is."""
        document, path, line = found
        if reader.policy.duplicates == "first":
            reader.report.duplicates += 1
            reader.report.note(f"duplicate id {document.id!r} skipped", path, line)
            return
        again = self._located(Reader(self._policy))
        first = next((place for place in again if place.document.id == document.id), found)
        where = first.path if first.line is None else f"{first.path}:{first.line}"
        raise DataError(
            f"duplicate id {document.id!r}, first used at {where}; give every document its own id, or keep "
            "the first of each with ReadPolicy(duplicates='first') (`counterpoint index --lenient`)",
            path=path,
            line=line,
        )


def _checked(found: Located, reader: Reader) -> Document | None:
    """The document with a usable id and storable texts of allowed length; None if it is skipped."""
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
    """The metadata in a form that UTF-8 can store; None if they cannot be written as JSON."""
    try:
        written = json.dumps(dict(metadata), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        reader.reject(f"the metadata cannot be written as JSON ({error})", path, line)
        return None
    sound = reader.sound(written, path, line)
    return metadata if sound is written else json.loads(sound)
