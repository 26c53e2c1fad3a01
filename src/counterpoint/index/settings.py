"""What an index keeps: `IndexSettings`, and what it needs of a model, `TextModel` and its `VectorSet`s."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from counterpoint.config import plain
from counterpoint.errors import ConfigError
from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.codec_names import CodecChoice, CodecName
from counterpoint.index.layout import AnnName, Kind, SetLayout
from counterpoint.index.lexical import LEXICAL, LexicalSettings
from counterpoint.index.where import FieldType
from counterpoint.typed import faults_of
from counterpoint.types import Ragged, Side, Span

__all__ = [
    "BuildModel",
    "ExportsQueries",
    "IndexSettings",
    "Loadable",
    "TextModel",
    "VectorSet",
    "check_matching",
    "remembered_name",
]

RESERVED = (LEXICAL, "feedback")  # parts of a score that are no vector sets
MATCHED: Mapping[str, Any] = MappingProxyType(
    {
        "weights": Mapping[str, float] | None,
        "idf": Mapping[str, float] | None,
        "exact": tuple[str, ...] | None,
        "floor": tuple[str, ...] | None,
    }
)
"""What of the search settings names vector sets; the rest is the search's own to check."""
SMALL = 4  # components below which a scale for each vector would cost as much as it saves


@dataclass(frozen=True)
class VectorSet:
    """What a model says of one of its vector sets.

    Attributes:
        dim: components of a vector.
        pooled: one row a text.
        ids: every row has an id.
        static: a row is decided by its id alone.
        special: ids that stand for nothing in a text ([CLS], [MASK] and their like), which idf weighs by 0.
    """

    dim: int
    pooled: bool
    ids: bool
    static: bool = False
    special: tuple[int, ...] = ()


class TextModel(Protocol):
    """What an index needs of a model: texts in, named packed vectors out. No torch on this side."""

    @property
    def sets(self) -> Mapping[str, VectorSet]:
        """The vector sets by name."""
        ...

    def fingerprint(self) -> str:
        """Equal exactly for models that compute the same."""
        ...

    def encode_query(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """Vectors of queries."""
        ...

    def encode_document(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """Vectors of documents."""
        ...

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """The piece of text that each row of a set stands for, whether it is kept in an index or not."""
        ...

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """The id of each row that `spans` tells of, for sets that have ids."""
        ...

    def gate_weights(self, texts: Sequence[str], name: str) -> Ragged:
        """For sets of which a gate drops rows: its value for each row of documents that `spans` tells of."""
        ...

    def table(self, name: str) -> Float[np.ndarray, "v d"]:
        """The vector of every id in documents, for static sets."""
        ...


@runtime_checkable
class BuildModel(TextModel, Protocol):
    """What building an index asks of a model beside its vectors: how it is indexed, and found again."""

    @property
    def source(self) -> str | None:
        """What it can be loaded by again: a name, a hub id, a folder. None if it cannot."""
        ...

    @property
    def longest(self) -> int:
        """Word-pieces of a document that it reads."""
        ...

    def encode_counted(
        self, texts: Sequence[str], progress: Callable[[int], object] | None = None
    ) -> tuple[Mapping[str, Ragged], int]:
        """Vectors of documents, and how many of the documents are longer than that.

        `progress` is called with the number of texts done since its last call.
        """
        ...

    def index_settings(self) -> IndexSettings:
        """How an index of it is built unless told otherwise."""
        ...

    def save(self, folder: Path) -> None:
        """Write it into a new folder, which is then its source."""
        ...


@runtime_checkable
class Loadable(Protocol):
    """A model that other processes can load."""

    def loader(self, scratch: Path, processes: int) -> Callable[[], BuildModel]:
        """What makes an equal model in each of some processes; it is sent there.

        `scratch` is an empty folder, which is there for as long as the processes are.
        """
        ...


@runtime_checkable
class ExportsQueries(Protocol):
    """A model whose queries can be encoded without it."""

    def export_queries(self, folder: Path) -> dict[str, Any]:
        """Write what encodes queries into a folder; what the manifest is to say of it.

        Nothing is written where the answer has `why`.
        """
        ...


@dataclass(frozen=True)
class IndexSettings:
    """What an index keeps.

    Attributes:
        codec: how vectors are stored. Pooled vectors are few, so with fewer than 8 bits for others they get
            `int8`. Vectors of fewer than 4 components get `float16` in place of all of these: a scale each
            would take as much room. Static sets have no vectors stored. `auto`: chosen by the
            first documents, see `counterpoint.index.auto_codec`.
        sets: which of the model's vector sets; None for all.
        lexical: BM25 settings; None for no lexical part.
        search: how it is searched unless told otherwise (`SearchSettings` as plain data). Sets that it calls
            `exact` get an inverted index.
        ann: an approximate first stage of pooled sets; None for an exact one, which looks at every vector.
        model: name under which the model will be found again; a relative path is relative to the index.
        metadata: fields of the documents' metadata that have a type, and an index for conditions.
        passage_words: into how many words at most documents were cut that were read for it, as
            `BuildOptions` has it; those that are added later are cut alike.
        gate: what the model's gates were closed to before (`Model.close_gates`); None where nothing was done.
    """

    codec: CodecChoice = "int8"
    sets: tuple[str, ...] | None = None
    lexical: LexicalSettings | None = LexicalSettings()
    search: Mapping[str, Any] | None = None
    model: str | None = None
    ann: AnnName | None = None
    gate: float | None = None
    metadata: Mapping[str, FieldType] = field(default_factory=dict)
    passage_words: int | None = None

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> IndexSettings:
        """What a manifest says; older versions had fewer fields."""
        known = {name: data[name] for name in IndexSettings.__dataclass_fields__ if name in data}
        if known.get("lexical") is not None:
            known["lexical"] = LexicalSettings.from_dict(known["lexical"])
        if known.get("sets") is not None:
            known["sets"] = tuple(known["sets"])
        return IndexSettings(**known)

    def layouts(self, model: TextModel | None) -> dict[str, SetLayout]:
        """The stored sets of a model.

        Raises:
            ConfigError: a set that the model does not have or that cannot match as `search` says, or nothing
                to store at all.
        """
        known = {} if model is None else dict(model.sets)
        wanted = tuple(known) if self.sets is None else self.sets
        missing = [name for name in wanted if name not in known]
        if missing:
            raise ConfigError(
                f"the model has no vector set {missing[0]!r}; it has {', '.join(known) or 'none'}"
            )
        odd = [name for name in wanted if not name.isidentifier()]
        if odd:
            raise ConfigError(f"a vector set must be named like a Python variable, found {odd[0]!r}")
        if taken := [name for name in wanted if name in RESERVED]:
            raise ConfigError(
                f"a vector set cannot be called {taken[0]!r}, which is a part of the score of its own"
            )
        if not wanted and self.lexical is None:
            raise ConfigError("neither vectors nor a lexical part: there would be nothing to search")
        search = self.search or {}
        faults = [
            fault
            for key, hint in MATCHED.items()
            for fault in faults_of(plain(search.get(key)), hint, f"search.{key}")
        ]
        if faults:
            raise ConfigError(*faults)
        exact = tuple(search.get("exact", ()))
        layouts = {
            name: SetLayout(x.dim, self._kind(x, name in exact), self._codec(x), x.ids)
            for name, x in ((name, known[name]) for name in wanted)
        }
        for key, names in (("exact", exact), ("floor", (self.search or {}).get("floor", ()))):
            check_matching(key, names, layouts)
        if self.ann is not None and not any(layout.kind == "graph" for layout in layouts.values()):
            raise ConfigError(f"ann={self.ann!r}: there is no pooled set to search approximately")
        return layouts

    def _kind(self, vectors: VectorSet, exact: bool) -> Kind:
        if vectors.pooled:
            return "dense" if self.ann is None else "graph"
        if vectors.static:
            return "static"
        if exact:
            return "exact"
        few = isinstance(CODECS[self._codec(vectors)], Bits)
        return "lists" if few and not vectors.ids else "several"

    def _codec(self, vectors: VectorSet) -> CodecName:
        if vectors.static:
            return "float32"
        if self.codec == "auto":  # not chosen yet; what is asked of layouts before does not depend on it
            return "float16"
        if self.codec not in ("float32", "float16") and vectors.dim < SMALL:
            return "float16"
        few = self.codec not in ("float32", "float16", "int8")
        return "int8" if vectors.pooled and few else self.codec


def remembered_name(source: str | Path, index: Path) -> str:
    """How an index refers to its model: a folder by its path relative to the index, anything else by name."""
    if not Path(source).is_dir():
        return str(source)
    return "./" + Path(os.path.relpath(source, index)).as_posix()


def check_matching(key: str, names: Sequence[str], layouts: Mapping[str, SetLayout]) -> None:
    """Refuse `exact` or `floor` (the key) of sets that are not there, pooled, or without ids.

    Raises:
        ConfigError: saying which.
    """
    for name in names:
        if name not in layouts:
            raise ConfigError(
                f"search.{key}: no vector set {name!r}; there are {', '.join(layouts) or 'none'}"
            )
        if layouts[name].pooled:
            raise ConfigError(
                f"search.{key}: {name!r} is pooled; only sets of several vectors match by words"
            )
        if key == "exact" and not layouts[name].ids:
            raise ConfigError(f"search.exact: the vectors of {name!r} have no ids to match by")
