"""Change an index with documents of any source."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Unpack, final

from counterpoint.errors import ConfigError, DataError
from counterpoint.library.keywords import AddKeywords, check_keywords, with_names
from counterpoint.library.options import AddOptions, BuildOptions
from counterpoint.library.reading import read

if TYPE_CHECKING:
    from counterpoint.index import Index
    from counterpoint.index.changing import Change
    from counterpoint.index.field import Expression
    from counterpoint.library.reading import Reading
    from counterpoint.model import Model

__all__ = ["Changes", "reading_for", "refitted"]


@final
class Changes:
    """Changes of an index, applied in the order of the calls.

    Made by `OpenIndex.writing`; all changes are committed together.
    """

    def __init__(self, change: Change, index: Index):
        self._change, self._index = change, index

    @property
    def replaced(self) -> int:
        """Number of documents replaced so far, passages not counted."""
        return self._change.replaced

    @with_names(AddKeywords)
    def add(self, source: Any, **settings: Unpack[AddKeywords]) -> int:
        """Add documents; return how many (passages, if documents were cut).

        Args:
            source: as `counterpoint.index` takes it.
            settings: fields of `AddOptions`.

        Raises:
            DataError: an id exists already and `replace` is not set, or the source cannot be read.
            ConfigError: a setting does not exist or has an invalid value.
            ArtifactError: the model is missing, or is not the one that the index was built with.
        """
        check_keywords(settings, *AddKeywords.__annotations__)
        options = AddOptions(**settings)
        reading = reading_for(self._index, source, options)
        added = self.read(reading, replace=options.replace)
        if lost := reading.report.lost():
            warnings.warn(lost, stacklevel=3)
        return added

    def read(self, reading: Reading, *, replace: bool) -> int:
        """Add the documents of an opened source; return how many."""
        try:
            return self._change.add(reading, replace=replace)
        except DataError as error:
            if error.path is None:
                raise DataError(str(error), path=reading.origin) from error
            raise

    def update(self, source: Any, **settings: Unpack[AddKeywords]) -> int:
        """Add documents, replacing those with the same ids; return how many were added."""
        return self.add(source, **{**settings, "replace": True})

    def delete(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        where: str | Expression | None = None,
        missing_ok: bool = False,
    ) -> int:
        """Delete documents, with all their passages, by id or by a metadata condition; return how many.

        Args:
            ids: one id or several.
            where: a condition as for `search`, instead of ids. It is evaluated on the documents before the
                change. A document that was cut is deleted whole if one of its passages meets it.
            missing_ok: ignore ids that no document has.

        Raises:
            ConfigError: neither or both are given, or the condition is malformed.
            DataError: no document has an id.
        """
        if ids is None and where is None:
            raise ConfigError("name the documents to delete, by their ids or by a condition (where)")
        if ids is not None and where is not None:
            raise ConfigError("name documents by their ids or by a condition (where), not by both")
        if where is not None:
            return self._change.delete_where(str(where))
        named = [ids] if isinstance(ids, str) else list(ids or ())
        return self._change.delete(named, missing_ok=missing_ok)


def refitted(index: Index, model: Model | None, on_progress: Callable[[int], None]) -> None:
    """Build an index again from its own documents and settings; continue an interrupted build."""
    from counterpoint.index import IndexSettings, build_index

    settings = IndexSettings.from_dict(index.manifest.settings)
    documents = (index.document(position) for position in index.positions.tolist())
    build_index(
        documents, model, index.folder, settings, overwrite=True, resume=True, on_progress=on_progress
    )


def reading_for(index: Index, source: Any, options: AddOptions) -> Reading:
    """Open a source to add its documents to an index.

    Raises:
        ConfigError, DataError: as `counterpoint.library.reading.read`.
    """
    words = options.passage_words
    if words is None:
        words = index.manifest.settings.get("passage_words")
    how = {name: value for name, value in vars(options).items() if name != "replace"}
    return read(source, BuildOptions(**{**how, "passage_words": words}))
