"""`Index`: a committed index, open for reading."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, final

import numpy as np
from jaxtyping import Bool, Float, Int

from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index.bounded_cache import BoundedCache
from counterpoint.index.deletes import Counts
from counterpoint.index.disk_usage import disk_usage
from counterpoint.index.drift import drift_of
from counterpoint.index.kernels import idf_of
from counterpoint.index.layout import SetLayout
from counterpoint.index.lexical import LEXICAL, Lexical, LexicalSettings
from counterpoint.index.lexical_store import LexicalStore
from counterpoint.index.manifest import NAME, Manifest
from counterpoint.index.metadata import column_of, remedy_of, test_of, types_of
from counterpoint.index.opening import Opened, opened, stores_of
from counterpoint.index.segment import Segment
from counterpoint.index.store import Store
from counterpoint.index.stored_rows import split_by_segment, without_counts
from counterpoint.index.where import FieldType, Tested, names_in, where_of
from counterpoint.types import Document, Ragged

if TYPE_CHECKING:
    from counterpoint.index.settings import TextModel

__all__ = ["Index"]

T = TypeVar("T")

CONDITIONS = 2**26  # bytes of the cache of the documents that match metadata conditions


@final
class Index:
    """Documents, their vectors and their BM25 postings, by position and by id.

    Positions run from 0 to `end` over all segments. Deleted documents are skipped wherever documents are
    found or counted. Opening maps files and reads no vectors. It checks the manifest, sizes and headers.
    Everything else is checked before its first use (see `counterpoint.index.checked`).

    An open index is a snapshot. It keeps answering from the files that it opened, whatever is committed or
    built later. Call `refreshed` for the current state. Windows does not delete open files; the next commit
    removes them.

    Args:
        folder: an index built by `build_index`.
        manifest: what to open instead of the last commit; a writer passes one that is not committed yet.

    Attributes:
        sets: the store of every vector set, by name.
        starts: the first position of each segment, and `end`.
        end: the position after the last.
        live: for every position, whether its document is not deleted; None if no document is deleted.
        order: for every position, the place of its document in the order of adding, which decides between
            equal scores; None if it is the position. Only an index of shards has other places.

    Raises:
        ArtifactError: there is no index, it is unfinished or damaged, or its format is of another version.
            Every other method raises it, too, if what it reads is damaged.
    """

    def __init__(self, folder: str | Path, manifest: Manifest | None = None):
        self.folder = Path(folder)
        self._whole: Index | None = None
        self._stores: Callable[[str], Store[Any]] | None = None
        self._read = _written(self.folder)  # before reading it, so that no commit in between is missed
        self._hold(opened(self.folder, (), manifest, committed=manifest is None))

    def _hold(self, opened: Opened) -> None:
        self.manifest, self.segments, self.sets = opened
        self.starts = np.cumsum([0] + [segment.documents for segment in self.segments])
        self.end = int(self.starts[-1])
        self.live, self.order = _live_of(self.segments), _order_of(self.segments)
        self._lengths: dict[str, Int[np.ndarray, " n"]] = {}
        self._frequencies: dict[str, Counts] = {}

    def __len__(self) -> int:
        """Number of documents that are not deleted (passages, where documents were cut)."""
        return self.manifest.documents

    def refreshed(self) -> Index:
        """The index as of the last commit: this one if nothing changed, else a new snapshot.

        Both share the files that are still used, so closing either closes both. A new snapshot has no model
        bound.

        Raises:
            ArtifactError: as for opening.
        """
        written = _written(self.folder)
        if written is not None and written == self._read:
            return self
        manifest = Manifest.read(self.folder)
        if manifest == self.manifest:
            self._read = written
            return self
        other = self._copied()
        other._read = written
        other._hold(opened(self.folder, self.segments, manifest))
        return other

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the databases; memory maps are closed with their arrays."""
        for segment in self.segments:
            segment.database.close()

    def bound(self, model: TextModel) -> Index:
        """Copy of the index, bound to its model, which supplies the vectors of static sets.

        It shares all files with this one, so closing either closes both.

        Raises:
            ArtifactError: the index was built with another model.
        """
        self.check_model(model.fingerprint())
        bound = copy.copy(self)
        bound.sets = {name: store.bound(model) for name, store in self.sets.items()}
        return bound

    def shard(self, number: int) -> Index:
        """The documents of one shard only. Document frequencies and lengths are those of the whole index.

        Positions begin at 0. Both share all files, so closing either closes both.

        Raises:
            ConfigError: no document is in this shard.
        """
        chosen = tuple(segment for segment in self.segments if (segment.entry.shard or 0) == number)
        if not chosen:
            raise ConfigError(f"shard {number} has no documents; the index has {self.manifest.shards} shards")
        other = self._copied()
        other._hold((self.manifest, chosen, stores_of(self.layouts, chosen)))
        other._whole = self
        return other

    def searched_by(self, stores: Callable[[str], Store[Any]]) -> Index:
        """Copy of the index whose parts are searched elsewhere; documents and counts are read here.

        Args:
            stores: gives the store of a part by its name.
        """
        other = copy.copy(self)
        other._stores = stores
        return other

    def _copied(self) -> Index:
        """Copy without what was computed from the segments."""
        other = copy.copy(self)
        for name in [name for name in vars(other) if isinstance(vars(Index).get(name), cached_property)]:
            del vars(other)[name]
        return other

    @property
    def layouts(self) -> Mapping[str, SetLayout]:
        """How each vector set is stored."""
        return {name: store.layout for name, store in self.sets.items()}

    # -- documents -------------------------------------------------------------------------------------

    def document(self, position: int) -> Document:
        """The document at a position."""
        (found,) = self.documents_at(np.array([position]))
        return found

    def documents_at(self, positions: Int[np.ndarray, " k"]) -> list[Document]:
        """The documents at some positions, in the order asked for."""
        return self._of_rows(positions, lambda segment, rows: segment.database.documents_at(rows))

    def position_of(self, document_id: str) -> int | None:
        """The position of a document; None if it is not in the index."""
        for segment, start in zip(reversed(self.segments), self.starts[-2::-1], strict=True):
            row = segment.row_of(document_id)  # latest first: recently added documents are asked for most
            if row is not None:
                return int(start) + row
        return None

    @property
    def positions(self) -> Int[np.ndarray, " k"]:
        """The positions of all documents, in the order of adding."""
        return self.ordered(np.arange(self.end) if self.live is None else np.flatnonzero(self.live))

    def ordered(self, positions: Int[np.ndarray, " k"]) -> Int[np.ndarray, " k"]:
        """Ascending positions, in the order in which their documents were added."""
        return positions if self.order is None else positions[np.argsort(self.order[positions])]

    def name_of(self, position: int) -> str:
        """The id of the document at a position."""
        (found,) = self.names_of(np.array([position]))
        return found

    def names_of(self, positions: Int[np.ndarray, " k"]) -> list[str]:
        """The ids of the documents at some positions, in the order asked for."""
        return self._of_rows(positions, lambda segment, rows: segment.database.names(rows))

    def _of_rows(
        self, positions: Int[np.ndarray, " k"], read: Callable[[Segment, list[int]], list[T]]
    ) -> list[T]:
        """What is read from each segment about its rows, in the order of the positions."""
        outside = positions[(positions < 0) | (positions >= self.end)]
        if len(outside):
            raise DataError(f"there is no document at position {outside[0]}; the index has {self.end}")
        found: list[Any] = [None] * len(positions)
        for i, where in split_by_segment(self.starts, positions):
            rows = read(self.segments[i], (positions[where] - self.starts[i]).tolist())
            for place, row in zip(where.tolist(), rows, strict=True):
                found[place] = row
        return found

    @cached_property
    def parents(self) -> dict[str, str]:
        """For each passage id, the id of the document that it was cut from."""
        return {
            name: parent
            for segment in self.segments
            for name, parent in segment.database.passages(segment.gone)
        }

    # -- parts of a score ------------------------------------------------------------------------------

    @cached_property
    def lexical(self) -> Lexical | None:
        """The BM25 part, if the index has one."""
        if not self.manifest.has_lexical:
            return None
        settings = LexicalSettings.from_dict(self.manifest.settings["lexical"])
        parts = [(segment.terms, segment.live) for segment in self.segments if segment.terms is not None]
        return Lexical(parts, settings, None if self._whole is None else self._whole.lexical)

    def part(self, name: str) -> Store[Any]:
        """The store of one score part: a vector set, or BM25.

        Raises:
            ConfigError: the index has no such part.
        """
        if self._stores is not None and (name in self.sets or (name == LEXICAL and self.lexical)):
            return self._stores(name)
        if name in self.sets:
            return self.sets[name]
        if name != LEXICAL or self.lexical is None:
            raise ConfigError(f"this index has no part {name!r}")
        return LexicalStore(self.lexical)

    def take(self, name: str, positions: Int[np.ndarray, " k"]) -> Ragged:
        """The vectors of one set for some documents, decoded to float32.

        In a static set a document has one row per distinct id, in ascending order of ids.

        Raises:
            ConfigError: the set is static, and this index is not bound to its model.
        """
        return self.sets[name].take(positions)

    def mean_rows(self, name: str, positions: Int[np.ndarray, " k"]) -> float:
        """Mean number of vectors of a set per document at some positions; 0 without documents."""
        if name not in self._lengths:
            self._lengths[name] = self.sets[name].lengths
        return float(self._lengths[name][positions].mean()) if len(positions) else 0.0

    def idf(self, name: str, ids: Int[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """ln(1 + (N - df + ½) / (df + ½)) of ids over the documents; df = 0 for an unseen id."""
        if self._whole is not None:
            return self._whole.idf(name, ids)
        known, counts = self._frequencies_of(name)
        at = np.minimum(np.searchsorted(known, ids), max(len(known) - 1, 0))
        df = (
            np.where(known[at] == ids, counts[at], 0).astype(np.float64) if len(known) else np.zeros(len(ids))
        )
        return idf_of(df, len(self))

    def distinct_ids(self, name: str) -> int:
        """How many different ids the vectors of a set have."""
        return len(self._frequencies_of(name)[0])

    def _frequencies_of(self, name: str) -> Counts:
        """The distinct ids of a set and their document frequencies, without deleted documents."""
        if name not in self._frequencies:
            gone = [each.deletes.counts(name) for each in self.segments if each.deletes is not None]
            self._frequencies[name] = without_counts(self.sets[name].frequencies(), gone)
        return self._frequencies[name]

    # -- metadata --------------------------------------------------------------------------------------

    @cached_property
    def fields(self) -> Mapping[str, Tested]:
        """The metadata fields that conditions can test, with their types; declared ones first.

        The others are found by reading all documents, once. A field that has objects, or values of several
        types, is left out.
        """
        return {**self._declared, **self._others[0]}

    def matching(self, where: str) -> Bool[np.ndarray, " n"]:
        """For every position, whether a condition holds for its document (see `counterpoint.index.where`).

        The value is False for deleted documents.

        Raises:
            ConfigError: the condition is invalid, or tests an unknown field.
        """
        if (known := self._matching.get(where)) is not None:
            return known
        condition = where_of(
            where,
            self._fields_for(names_in(where)),
            lambda name: column_of(name) if name in self._declared else test_of(name),
        )
        found = np.zeros(self.end, bool)
        for segment, start in zip(self.segments, self.starts, strict=False):
            rows = segment.database.rows_where(condition.sql, condition.values)
            found[int(start) + np.array(rows, np.int64)] = True
        if self.live is not None:
            found &= self.live
        found.setflags(write=False)
        self._matching.put(where, found)
        return found

    @cached_property
    def _matching(self) -> BoundedCache[Bool[np.ndarray, " n"]]:
        return BoundedCache(CONDITIONS)  # a cache of a method would keep the files of old commits open

    def _fields_for(self, names: set[str]) -> Mapping[str, Tested]:
        if names <= self._declared.keys():
            return self._declared
        for name in names & self._others[1].keys():
            found = self._others[1][name]
            raise ConfigError(
                f"the metadata field {name!r} has {found} in the documents; {remedy_of(name, found)}"
            )
        return self.fields

    @property
    def _declared(self) -> Mapping[str, FieldType]:
        return self.manifest.settings.get("metadata", {})

    @cached_property
    def _others(self) -> tuple[Mapping[str, Tested], Mapping[str, str]]:
        """The types of undeclared fields, and for fields without a single type, the types found."""
        return types_of({pair for segment in self.segments for pair in segment.database.kinds(segment.gone)})

    # -- accounts --------------------------------------------------------------------------------------

    def info(self) -> dict[str, Any]:
        """The disk usage and, under `drift`, how well means and centroids fit documents added later.

        See `counterpoint.index.drift`.
        """
        return {**self.disk_usage(), "drift": drift_of(self.segments, self.layouts)}

    def disk_usage(self) -> dict[str, Any]:
        """Disk usage by purpose and by set, and per byte of text; reads no vectors.

        See `counterpoint.index.disk_usage`.
        """
        return disk_usage(self.folder, (self.manifest, self.segments, self.sets), self.distinct_ids)

    def check_model(self, fingerprint: str) -> None:
        """Check that a model is the one this index was built with.

        Raises:
            ArtifactError: it is another model; the message gives both fingerprints.
        """
        self.manifest.check_model(self.folder, fingerprint)


def _live_of(segments: Sequence[Segment]) -> Bool[np.ndarray, " n"] | None:
    """For every position, whether its document is not deleted; None if no document is deleted."""
    if all(segment.live is None for segment in segments):
        return None
    every = [np.ones(each.documents, bool) if each.live is None else each.live for each in segments]
    live = np.concatenate(every)
    live.setflags(write=False)
    return live


def _order_of(segments: Sequence[Segment]) -> Int[np.ndarray, " n"] | None:
    places = [segment.places for segment in segments]
    if all(each is None for each in places):
        return None
    if any(each is None for each in places):
        raise ArtifactError("some segments have no order of documents", path=segments[0].files.folder)
    return np.concatenate([each for each in places if each is not None])


def _written(folder: Path) -> tuple[int, int, int] | None:
    try:
        found = (folder / NAME).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
