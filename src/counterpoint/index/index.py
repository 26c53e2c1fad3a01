"""`Index`: a committed index, open for reading."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from jaxtyping import Bool, Float, Int

from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index.accounts import account_of
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.kernels import idf_of
from counterpoint.index.kinds import KINDS
from counterpoint.index.layout import SetLayout
from counterpoint.index.lexical import Lexical, LexicalSettings
from counterpoint.index.lexical_store import LEXICAL, LexicalStore
from counterpoint.index.manifest import Manifest
from counterpoint.index.metadata import column_of, test_of, types_of
from counterpoint.index.piece import Piece
from counterpoint.index.segment import Segment
from counterpoint.index.store import Store, VectorStore
from counterpoint.index.stored_rows import split_by_segment
from counterpoint.index.where import FieldType, names_in, where_of
from counterpoint.types import Document, Ragged

if TYPE_CHECKING:
    from counterpoint.index.settings import TextModel

__all__ = ["Index"]

CONDITIONS = 32  # whose documents are remembered
OPENINGS = 10  # of an index that is replaced again each time


@final
class Index:
    """Documents, their vectors and their postings, by position and by id.

    Positions run from 0 over all segments. Opening maps files and reads no vectors. It checks the manifest,
    sizes and headers. Everything else is checked before its first use (see `counterpoint.index.checked`).

    An open index is not affected by a rebuild: it keeps answering from the files that it opened. Windows does
    not delete open files; the next build removes them.

    Args:
        folder: an index built by `build_index`.

    Attributes:
        sets: the store of every vector set, by name.

    Raises:
        ArtifactError: no index there, an unfinished or damaged one, or another version's. Every other method
            raises it, too, where what it reads is damaged.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.manifest, self.segments, self.sets, self._lexical_files = _opened(self.folder)
        self._starts = np.cumsum([0] + [segment.documents for segment in self.segments])
        self._lengths: dict[str, Int[np.ndarray, " n"]] = {}
        self._frequencies: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def __len__(self) -> int:
        """Number of documents (passages, where documents were cut)."""
        return int(self._starts[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the databases."""
        for segment in self.segments:
            segment.close()

    def bound(self, model: TextModel) -> Index:
        """The same index with the model that it was built with, which has the vectors of static sets.

        It shares all files with this one, so closing either closes both.

        Raises:
            ArtifactError: another model.
        """
        self.check_model(model.fingerprint())
        bound = copy.copy(self)
        bound.sets = {name: store.bound(model) for name, store in self.sets.items()}
        return bound

    @property
    def layouts(self) -> Mapping[str, SetLayout]:
        """How each vector set is stored."""
        return {name: store.layout for name, store in self.sets.items()}

    # -- documents -------------------------------------------------------------------------------------

    def document(self, position: int) -> Document:
        """The document at a position."""
        segment, row = self._locate(position)
        return segment.document(row)

    def position_of(self, document_id: str) -> int | None:
        """The position of a document, or None."""
        for segment, start in zip(self.segments, self._starts, strict=False):
            row = segment.row_of(document_id)
            if row is not None:
                return int(start) + row
        return None

    def name_of(self, position: int) -> str:
        """The id of the document at a position."""
        segment, row = self._locate(position)
        return segment.name_of(row)

    def names_of(self, positions: Int[np.ndarray, " k"]) -> list[str]:
        """The ids of the documents at some positions, in the order asked for."""
        outside = positions[(positions < 0) | (positions >= len(self))]
        if len(outside):
            raise self._without(int(outside[0]))
        names = np.empty(len(positions), object)
        for i, where in split_by_segment(self._starts, positions):
            names[where] = self.segments[i].names_of((positions[where] - self._starts[i]).tolist())
        return names.tolist()

    @cached_property
    def parents(self) -> dict[str, str]:
        """For passages: the document that each was cut from."""
        return {name: parent for segment in self.segments for name, parent in segment.passages()}

    # -- parts of a score ------------------------------------------------------------------------------

    @cached_property
    def lexical(self) -> Lexical | None:
        """The BM25 part, if the index has one."""
        if self._lexical_files is None:
            return None
        return Lexical(self._lexical_files, LexicalSettings.from_dict(self.manifest.settings["lexical"]))

    def part(self, name: str) -> Store[Any]:
        """What answers for a part of a score: a vector set, or BM25.

        Raises:
            ConfigError: the index has no such part.
        """
        if name in self.sets:
            return self.sets[name]
        if name != LEXICAL or self.lexical is None:
            raise ConfigError(f"this index has no part {name!r}")
        return LexicalStore(self.lexical)

    def take(self, name: str, positions: Int[np.ndarray, " k"]) -> Ragged:
        """One vector set of some documents, decoded to float32.

        Of a static set a document has one row for each distinct id, in rising order of ids.

        Raises:
            ConfigError: the set is static, and this index is not bound to its model.
        """
        return self.sets[name].take(positions)

    def mean_rows(self, name: str, positions: Int[np.ndarray, " k"]) -> float:
        """How many vectors of a set the documents at some positions have on average; 0 without documents."""
        if name not in self._lengths:
            self._lengths[name] = self.sets[name].lengths
        return float(self._lengths[name][positions].mean()) if len(positions) else 0.0

    def idf(self, name: str, ids: Int[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """ln(1 + (N - df + ½) / (df + ½)) of ids over this index's documents; df = 0 for an unseen one."""
        known, counts = self._frequencies_of(name)
        at = np.minimum(np.searchsorted(known, ids), max(len(known) - 1, 0))
        df = (
            np.where(known[at] == ids, counts[at], 0).astype(np.float64) if len(known) else np.zeros(len(ids))
        )
        return idf_of(df, len(self))

    def distinct_ids(self, name: str) -> int:
        """How many different ids the vectors of a set have."""
        return len(self._frequencies_of(name)[0])

    def _frequencies_of(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in self._frequencies:
            self._frequencies[name] = self.sets[name].frequencies()
        return self._frequencies[name]

    def _locate(self, position: int) -> tuple[Segment, int]:
        if not 0 <= position < len(self):
            raise self._without(position)
        i = int(np.searchsorted(self._starts, position, side="right")) - 1
        return self.segments[i], position - int(self._starts[i])

    def _without(self, position: int) -> DataError:
        return DataError(f"there is no document at position {position}; the index has {len(self)}")

    # -- metadata --------------------------------------------------------------------------------------

    @cached_property
    def fields(self) -> Mapping[str, FieldType]:
        """The metadata fields that conditions can test, with their types: those declared, then the others.

        Other fields are looked for in all documents, once. A field that has values of several types in them,
        or lists, is none.
        """
        return {**self._declared, **self._others[0]}

    def matching(self, where: str) -> Bool[np.ndarray, " n"]:
        """For every document whether a condition on its metadata holds (see `counterpoint.index.where`).

        Raises:
            ConfigError: it is no condition, or tests a field that there is not.
        """
        return self._matching(where)

    @cached_property
    def _matching(self) -> Callable[[str], Bool[np.ndarray, " n"]]:
        return lru_cache(maxsize=CONDITIONS)(self._matching_of)

    def _matching_of(self, where: str) -> Bool[np.ndarray, " n"]:
        condition = where_of(where, self._fields_for(names_in(where)), self._tested)
        found = np.zeros(len(self), bool)
        for segment, start in zip(self.segments, self._starts, strict=False):
            found[int(start) + np.array(segment.rows_where(condition), np.int64)] = True
        found.setflags(write=False)
        return found

    def _fields_for(self, names: set[str]) -> Mapping[str, FieldType]:
        """The fields that a condition may mean; only if it names others than declared ones, all of them."""
        if names <= self._declared.keys():
            return self._declared
        for name in names & self._others[1].keys():
            raise ConfigError(
                f"the metadata field {name!r} has {self._others[1][name]} in the documents; build the index "
                f"with a type for it (--metadata {name}:str), so that conditions can test it"
            )
        return self.fields

    def _tested(self, name: str) -> str:
        return column_of(name) if name in self._declared else test_of(name)

    @property
    def _declared(self) -> Mapping[str, FieldType]:
        return self.manifest.settings.get("metadata", {})

    @cached_property
    def _others(self) -> tuple[Mapping[str, FieldType], Mapping[str, str]]:
        """The types of the fields that are not declared, and of those without one why."""
        return types_of({pair for segment in self.segments for pair in segment.kinds()})

    # -- accounts --------------------------------------------------------------------------------------

    def info(self) -> dict[str, Any]:
        """Sizes by purpose and by set, and over the plain text; see `counterpoint.index.accounts`."""
        return account_of(self)

    def check_model(self, fingerprint: str) -> None:
        """Refuse a model that is not the one this index was built with.

        Raises:
            ArtifactError: saying both fingerprints.
        """
        built_with = (self.manifest.model or {}).get("fingerprint")
        if fingerprint != built_with:
            raise ArtifactError(
                f"built with the model {str(built_with)[:12]}, this one is {fingerprint[:12]}; "
                "search with the model that it was built with, or build it again with this one",
                path=self.folder,
            )


Opened = tuple[Manifest, tuple[Segment, ...], Mapping[str, VectorStore], CheckedFolder | None]


def _opened(folder: Path) -> Opened:
    """What an index is made of, all of it open; tried again where a rebuild replaced it meanwhile."""
    left = OPENINGS
    while True:
        manifest, left = Manifest.read(folder), left - 1
        try:
            return _open(folder, manifest)
        except ArtifactError:
            if not left or Manifest.read(folder) == manifest:
                raise


def _open(folder: Path, manifest: Manifest) -> Opened:
    layouts = {name: SetLayout.from_dict(x) for name, x in manifest.settings["layouts"].items()}
    for name, layout in layouts.items():
        if layout.kind not in KINDS:
            raise ArtifactError(
                f"vector set {name!r} is a store of kind {layout.kind!r}, which this version does not know; "
                "install the version that wrote the index or build it again",
                path=folder,
            )

    def files(name: str) -> CheckedFolder:
        listed = {
            path.removeprefix(f"{name}/"): entry
            for path, entry in manifest.files.items()
            if path.startswith(f"{name}/")
        }
        return CheckedFolder(folder / name, listed)

    lexical = None if manifest.lexical is None else files(manifest.lexical)
    segments = tuple(Segment(files(f"segments/{entry.name}"), entry.documents) for entry in manifest.segments)
    sets = {}
    for name, layout in layouts.items():
        pieces = [Piece(segment.files, segment.documents, layout) for segment in segments]
        sets[name] = KINDS[layout.kind].open(name, layout, pieces)
    return manifest, segments, sets, lexical
