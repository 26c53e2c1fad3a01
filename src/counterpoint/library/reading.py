"""What is read when an index is built: the documents of whatever a user names, as the options say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from counterpoint.errors import ConfigError
from counterpoint.index.metadata import named_fields
from counterpoint.library.keywords import check_keywords
from counterpoint.library.options import BuildOptions

if TYPE_CHECKING:
    from counterpoint.data import Collection, Fields, FileChoice, ReadPolicy, ReadReport
    from counterpoint.index.where import FieldType
    from counterpoint.types import Document

__all__ = ["Reading", "Survey", "build_options", "declared_fields", "read", "survey"]

SHOWN = 3  # documents of a survey
NOT_FOLDERS = "--include, --exclude and --no-gitignore choose files of a folder; this source is none"


@final
@dataclass(frozen=True)
class Reading:
    """Documents that were asked for, streamed.

    Attributes:
        collection: what is read.
        origin: where from, for messages.
        words: the most words of a passage, where documents are cut after they were read.
        decided: what was decided before all was read, such as which column is the text's.
        report: counts what the source holds, while it is read.
    """

    collection: Collection
    origin: str
    words: int | None
    decided: tuple[str, ...]
    report: ReadReport

    @property
    def size(self) -> int | None:
        """Number of documents handed out, where it is known."""
        return None if self.words else self.collection.size

    def __iter__(self) -> Iterator[Document]:
        from counterpoint.data import cut_passages

        documents = self.collection.documents(self.report)
        if not self.words:
            yield from documents
            return
        for document in documents:
            if document.parent is not None:  # cut already
                yield document
                continue
            self.report.passages -= 1  # each is counted as one when it is read
            for passage in cut_passages(document, max_words=self.words):
                self.report.passages += 1
                yield passage


@final
@dataclass(frozen=True)
class Survey:
    """What would be read.

    Attributes:
        report: what the source holds.
        decided: as that of a `Reading`.
        first: the first few documents or passages.
    """

    report: ReadReport
    decided: tuple[str, ...]
    first: list[Document] = field(default_factory=list)


def read(source: Any, options: BuildOptions) -> Reading:
    """Open a source as the options say, and find out what can be wrong with it before all is read.

    Raises:
        ConfigError: a source of another kind, or an option that it has no use for.
        DataError: it cannot be read, or lacks a field that was named.
    """
    from counterpoint.data import Collection, ReadReport, items_of, open_collection

    policy, fields, choice = _policy(options), _fields(options), _choice(options)
    words = options.passage_words
    if isinstance(source, str | Path):
        whole = {} if words is None else {"passage_words": None}
        found = open_collection(source, policy=policy, fields=fields, choice=choice, **whole)
    else:
        if choice.include or choice.exclude:
            raise ConfigError(NOT_FOLDERS)
        if isinstance(source, Collection):
            if fields.named:
                raise ConfigError("id, title, text and metadata name columns; a collection has its own")
            found = source
        else:
            found = items_of(source, fields, policy)
    origin = str(source) if isinstance(source, str | Path) else found.name
    return Reading(found, origin, words, found.decided(), ReadReport())


def survey(source: Any, *, on_progress: Callable[[int], None] = lambda done: None, **settings: Any) -> Survey:
    """Read a source as `index` would, without a model and without writing anything.

    Args:
        source: as `index` takes it.
        on_progress: called with the number of documents or passages that were read.
        settings: fields of `BuildOptions`; those that do not concern reading change nothing.

    Raises:
        ConfigError, DataError: as `index`.

    Example:
        >>> found = survey([{"id": "a", "text": "A whale is a mammal."}])
        >>> found.report.summary()
        '1 document'
    """
    reading = read(source, build_options(settings))
    first: list[Document] = []
    for number, passage in enumerate(reading, 1):
        if number <= SHOWN:
            first.append(passage)
        on_progress(number)
    return Survey(reading.report, reading.decided, first)


def build_options(settings: Mapping[str, Any]) -> BuildOptions:
    """Settings by name as options.

    Raises:
        ConfigError: there is no such setting.
    """
    check_keywords(settings, *BuildOptions.__dataclass_fields__)
    return BuildOptions(**settings)


def _policy(options: BuildOptions) -> ReadPolicy:
    from counterpoint.data import ReadPolicy

    if options.lenient is None:
        return ReadPolicy()
    return ReadPolicy.lenient() if options.lenient else ReadPolicy(files="error")


def _fields(options: BuildOptions) -> Fields:
    from counterpoint.data import Fields

    named = named_fields(_several(options.metadata))
    # Where all have types, these are declared and nothing is left out.
    kept = tuple(named) if None in named.values() else None
    return Fields(options.id, options.title, options.text, kept)


def declared_fields(options: BuildOptions) -> dict[str, FieldType]:
    """The metadata fields that have a type."""
    named = named_fields(_several(options.metadata))
    return {name: kind for name, kind in named.items() if kind is not None}


def _choice(options: BuildOptions) -> FileChoice:
    from counterpoint.data import FileChoice

    return FileChoice(_several(options.include), _several(options.exclude), options.gitignore)


def _several(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())
