"""What an index keeps (`IndexSettings`), and what it needs from a model (`TextModel`, `VectorSet`)."""

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
from counterpoint.index.codec import CODECS, Bits, CodecChoice, CodecName
from counterpoint.index.layout import AnnName, Kind, SetLayout
from counterpoint.index.lexical import LEXICAL, LexicalSettings
from counterpoint.index.token_pooling import check_pool_factor
from counterpoint.index.where import FieldType
from counterpoint.typed import faults_of
from counterpoint.types import Ragged, Side, Span

__all__ = [
    "BuildModel",
    "ExportsQueries",
    "IndexSettings",
    "Loadable",
    "PassingModel",
    "TextModel",
    "VectorSet",
    "check_matching",
    "remembered_name",
]

RESERVED = (LEXICAL, "feedback")  # parts of a score that are not vector sets
MATCHED: Mapping[str, Any] = MappingProxyType(
    {
        "weights": Mapping[str, float] | None,
        "idf": Mapping[str, float] | None,
        "exact": tuple[str, ...] | None,
        "floor": tuple[str, ...] | None,
    }
)
"""The search settings that name vector sets; search checks the others."""
SMALL = 4  # vectors with fewer components get no scale: it would need the space that it saves


@dataclass(frozen=True)
class VectorSet:
    """Description of one of a model's vector sets.

    Attributes:
        dim: components of a vector.
        pooled: one row per text.
        ids: every row has an id.
        static: the id alone determines the row.
        special: ids of special tokens ([CLS], [MASK] and others), which idf weighs by 0.
    """

    dim: int
    pooled: bool
    ids: bool
    static: bool = False
    special: tuple[int, ...] = ()


class TextModel(Protocol):
    """What an index needs from a model: texts in, named packed vectors out. No torch on this side."""

    @property
    def sets(self) -> Mapping[str, VectorSet]:
        """The vector sets by name."""
        ...

    def fingerprint(self) -> str:
        """Hash of what the model computes; equal exactly for models that compute the same."""
        ...

    def encode_query(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """Vectors of queries."""
        ...

    def encode_document(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """Vectors of documents."""
        ...

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """The span of text of each row of a set, including rows that an index drops."""
        ...

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """The id of each row that `spans` lists, for sets that have ids."""
        ...

    def gate_weights(self, texts: Sequence[str], name: str) -> Ragged:
        """The gate's value for each row that `spans` lists for documents, for sets with a gate."""
        ...

    def table(self, name: str) -> Float[np.ndarray, "v d"]:
        """The document vector of every id, for static sets."""
        ...


class PassingModel:
    """A `TextModel` that passes everything on to another. Subclasses change some of it."""

    def __init__(self, model: TextModel):
        self.model = model

    @property
    def sets(self) -> Mapping[str, VectorSet]:
        """The model's vector sets."""
        return self.model.sets

    def fingerprint(self) -> str:
        """The model's fingerprint."""
        return self.model.fingerprint()

    def encode_query(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """The model's query vectors."""
        return self.model.encode_query(texts)

    def encode_document(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """The model's document vectors."""
        return self.model.encode_document(texts)

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """The model's spans."""
        return self.model.spans(texts, name, side)

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[np.ndarray]:
        """The model's row ids."""
        return self.model.row_ids(texts, name, side)

    def gate_weights(self, texts: Sequence[str], name: str) -> Ragged:
        """The model's gate weights."""
        return self.model.gate_weights(texts, name)

    def table(self, name: str) -> np.ndarray:
        """The model's table."""
        return self.model.table(name)


@runtime_checkable
class BuildModel(TextModel, Protocol):
    """What building an index needs from a model in addition to its vectors."""

    @property
    def source(self) -> str | None:
        """What loads it again: a name, a hub id or a folder. None if it cannot be loaded again."""
        ...

    @property
    def longest(self) -> int:
        """Maximum number of word-pieces that it reads of a document."""
        ...

    def encode_counted(
        self, texts: Sequence[str], progress: Callable[[int], object] | None = None
    ) -> tuple[Mapping[str, Ragged], int]:
        """Vectors of documents, and number of documents longer than `longest`.

        `progress` is called with the number of texts done since its last call.
        """
        ...

    def index_settings(self) -> IndexSettings:
        """The default settings for an index of this model."""
        ...

    def save(self, folder: Path) -> None:
        """Save it into a new folder, which becomes its source."""
        ...


@runtime_checkable
class Loadable(Protocol):
    """A model that other processes can load."""

    def loader(self, scratch: Path, processes: int) -> Callable[[], BuildModel]:
        """A picklable function that makes an equal model in each of some processes.

        `scratch` is an empty folder that exists as long as the processes do.
        """
        ...


@runtime_checkable
class ExportsQueries(Protocol):
    """A model whose queries can be encoded without it."""

    def export_queries(self, folder: Path) -> dict[str, Any]:
        """Write a query encoder into a folder; return its description for the manifest.

        If the description has `why`, the model cannot be exported and nothing is written.
        """
        ...


@dataclass(frozen=True)
class IndexSettings:
    """What an index keeps.

    Attributes:
        codec: how vectors are stored. With a codec of fewer than 8 bits, pooled vectors get `int8`, since
            they are few. Vectors of fewer than 4 components get `float16` instead of a codec with scales,
            which would use as much space. Static sets store no vectors. `auto` chooses a codec from the first
            documents, see `counterpoint.index.auto_codec`.
        sets: the model's vector sets to store; None for all.
        lexical: BM25 settings; None for no lexical part.
        search: default search settings (`SearchSettings` as plain data). Sets listed under `exact` get an
            inverted index.
        ann: approximate first stage of pooled sets; None for an exact one, which scores every vector.
        model: name from which the model is loaded again; a relative path is relative to the index.
        metadata: metadata fields with a declared type, which get a database index for conditions.
        passage_words: maximum number of words per passage, as in `BuildOptions`. Documents added later are
            cut in the same way.
        gate: threshold by which the model's gates were pruned before (`Model.prune`); None if they were
            not.
        shards: number of shards, see `counterpoint.index.sharding`.
        pool_factor: a document keeps 1/`pool_factor` of the vectors of each multi-vector set, see
            `counterpoint.index.token_pooling`. Static sets, and those with an inverted index, keep all.
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
    shards: int = 1
    pool_factor: float = 1.0

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> IndexSettings:
        """Read the settings of a manifest; older versions had fewer fields."""
        known = {name: data[name] for name in IndexSettings.__dataclass_fields__ if name in data}
        if known.get("lexical") is not None:
            known["lexical"] = LexicalSettings.from_dict(known["lexical"])
        if known.get("sets") is not None:
            known["sets"] = tuple(known["sets"])
        return IndexSettings(**known)

    def layouts(self, model: TextModel | None) -> dict[str, SetLayout]:
        """How each set of a model is stored.

        Raises:
            ConfigError: the model lacks a set, a set cannot match as `search` says, or there is nothing to
                store.
        """
        if self.codec not in (*CODECS, "auto"):
            raise ConfigError(f"codec must be auto, {', '.join(CODECS)}; found {self.codec!r}")
        known = {} if model is None else dict(model.sets)
        wanted = tuple(known) if self.sets is None else self.sets
        if missing := [name for name in wanted if name not in known]:
            raise ConfigError(
                f"the model has no vector set {missing[0]!r}; it has {', '.join(known) or 'none'}"
            )
        if odd := [name for name in wanted if not name.isidentifier()]:
            raise ConfigError(f"a vector set must be named like a Python variable, found {odd[0]!r}")
        if taken := [name for name in wanted if name in RESERVED]:
            raise ConfigError(
                f"a vector set cannot be called {taken[0]!r}: this name is reserved for another score part"
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
        check_pool_factor(self.pool_factor)
        layouts: dict[str, SetLayout] = {}
        for name in wanted:
            x, kind = known[name], self._kind(known[name], name in exact)
            pool = self.pool_factor if kind in ("several", "lists") else 1.0
            layouts[name] = SetLayout(x.dim, kind, self._codec(x), x.ids, pool)
        for key, names in (("exact", exact), ("floor", search.get("floor", ()))):
            check_matching(key, names, layouts)
        if self.ann is not None and not any(layout.kind == "graph" for layout in layouts.values()):
            raise ConfigError(f"ann={self.ann!r}: there is no pooled set to search approximately")
        if self.pool_factor != 1 and all(layout.pool == 1 for layout in layouts.values()):
            raise ConfigError(f"pool_factor={self.pool_factor:g}: no set has vectors that can be pooled")
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
        if self.codec == "auto":  # not chosen yet; until then nothing depends on the codec
            return "float16"
        if vectors.dim < SMALL and len(CODECS[self.codec].layout(vectors.dim)) > 1:
            return "float16"  # a scale would cost what the codec saves
        return "int8" if vectors.pooled and CODECS[self.codec].packs else self.codec


def remembered_name(source: str | Path, index: Path) -> str:
    """The model's name in an index: for a folder its path relative to the index, else the source itself."""
    if not Path(source).is_dir():
        return str(source)
    return "./" + Path(os.path.relpath(source, index)).as_posix()


def check_matching(key: str, names: Sequence[str], layouts: Mapping[str, SetLayout]) -> None:
    """Check that the sets under `exact` or `floor` (the key) exist, are not pooled, and have ids for `exact`.

    Raises:
        ConfigError: naming the first that does not.
    """
    for name in names:
        if name not in layouts:
            raise ConfigError(
                f"search.{key}: no vector set {name!r}; there are {', '.join(layouts) or 'none'}"
            )
        if layouts[name].pooled:
            raise ConfigError(f"search.{key}: {name!r} is pooled; only multi-vector sets can match by words")
        if key == "exact" and not layouts[name].ids:
            raise ConfigError(f"search.exact: the vectors of {name!r} have no ids to match by")
