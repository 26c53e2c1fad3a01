"""Read the documents of any source for an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from counterpoint.errors import ConfigError
from counterpoint.index.metadata import named_fields
from counterpoint.library.keywords import check_keywords
from counterpoint.library.options import BuildOptions

if TYPE_CHECKING:
    from counterpoint.data import Collection, ReadPolicy, ReadReport
    from counterpoint.index.where import FieldType
    from counterpoint.types import Document

__all__ = ["Reading", "Survey", "build_options", "declared_fields", "read", "survey"]

SHOWN = 3  # documents of a survey
NOT_FOLDERS = "--include, --exclude and --no-gitignore choose files of a folder; this source is no folder"


@final
@dataclass(frozen=True)
class Reading:
    """The documents of a source, streamed.

    Attributes:
        collection: the collection to read.
        origin: its source, for messages.
        words: maximum number of words per passage, if documents are cut after reading.
        decided: decisions made before reading, such as which column is the text.
        report: counts the contents of the source while it is read.
        declared: metadata fields with a declared type; the report lists those that no document has.
    """

    collection: Collection
    origin: str
    words: int | None
    decided: tuple[str, ...]
    report: ReadReport
    declared: tuple[str, ...] = ()

    @property
    def size(self) -> int | None:
        """Number of documents yielded, if known."""
        return None if self.words else self.collection.size

    def __iter__(self) -> Iterator[Document]:
        from counterpoint.data import cut_passages

        documents = self._noting_absent(self.collection.documents(self.report))
        if not self.words:
            yield from documents
            return
        for document in documents:
            if document.parent is not None:  # cut already
                yield document
                continue
            self.report.passages -= 1  # it was counted as one when it was read
            for passage in cut_passages(document, max_words=self.words):
                self.report.passages += 1
                yield passage

    def _noting_absent(self, documents: Iterable[Document]) -> Iterator[Document]:
        absent = dict.fromkeys(self.declared)
        for document in documents:
            for name in [name for name in absent if document.metadata.get(name) is not None]:
                del absent[name]
            yield document
        self.report.absent[:] = absent


@final
@dataclass(frozen=True)
class Survey:
    """Summary of what would be read.

    Attributes:
        report: contents of the source.
        decided: as for `Reading`.
        first: the first few documents or passages.
        queries: number of queries.
        judged: number of judged queries by split.
    """

    report: ReadReport
    decided: tuple[str, ...]
    first: list[Document] = field(default_factory=list)
    queries: int = 0
    judged: Mapping[str, int] = field(default_factory=dict)


def read(source: Any, options: BuildOptions) -> Reading:
    """Open a source with the options, and find faults before everything is read.

    Raises:
        ConfigError: the source is not supported, or an option does not apply to it.
        DataError: it cannot be read, or lacks a named field.
    """
    from counterpoint.data import Collection, Fields, FileChoice, ReadReport, items_of, open_collection

    policy, words = _policy(options), options.passage_words
    named = named_fields(_several("metadata", options.metadata))
    # If all have types, they are declared and nothing is left out.
    kept = tuple(named) if None in named.values() else None
    declared = tuple(declared_fields(options))
    fields = Fields(options.id, options.title, options.text, kept, declared)
    choice = FileChoice(
        _several("include", options.include), _several("exclude", options.exclude), options.gitignore
    )
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
    return Reading(found, origin, words, found.decided(), ReadReport(), declared)


def survey(source: Any, *, on_progress: Callable[[int], None] = lambda done: None, **settings: Any) -> Survey:
    """Read a source as `index` would, without a model and without writing anything.

    Queries and judgements are read as well, which `index` does not do.

    Args:
        source: as for `index`.
        on_progress: called with the number of documents or passages read.
        settings: fields of `BuildOptions`; those that do not concern reading have no effect.

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
    collection = reading.collection
    judged = {split: len(collection.qrels(split)) for split in collection.splits}
    return Survey(reading.report, reading.decided, first, len(collection.queries()), judged)


def build_options(settings: Mapping[str, Any]) -> BuildOptions:
    """Make options from settings by name.

    Raises:
        ConfigError: a setting is unknown.
    """
    check_keywords(settings, *BuildOptions.__dataclass_fields__)
    return BuildOptions(**settings)


def _policy(options: BuildOptions) -> ReadPolicy:
    from counterpoint.data import ReadPolicy

    if options.lenient is None:
        return ReadPolicy()
    return ReadPolicy.lenient() if options.lenient else ReadPolicy(files="error")


def declared_fields(options: BuildOptions) -> dict[str, FieldType]:
    """The metadata fields that have a type."""
    named = named_fields(_several("metadata", options.metadata))
    return {name: kind for name, kind in named.items() if kind is not None}


def _several(name: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, Mapping):  # whose values would be lost
        raise ConfigError(f'{name}: expected texts, such as "year:int" for metadata, found a mapping')
    return (given,) if isinstance(given, str) else tuple(given or ())
