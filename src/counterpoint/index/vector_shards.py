"""Vectors of an exported index: safetensors files, each with some consecutive documents.

    vectors/00001.safetensors
      documents        XXH3-64 of each document's id, title and text (uint64)
      <set>.offsets    rows of document i are offsets[i]:offsets[i + 1], counted within the file (int64)
      <set>.values     rows as float32, decoded; absent for static sets, whose vectors are in the model
      <set>.ids        id of each row (uint32), for sets with ids

The checksums of documents identify the text of each vector, so that an edited corpus is detected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import xxhash
from jaxtyping import Int
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from counterpoint.errors import DataError
from counterpoint.files import sha256_file
from counterpoint.index.codec import CodecName
from counterpoint.types import Document, Ragged

__all__ = ["ExportedSet", "Shard", "ShardWriter", "VectorShards", "shard_name"]

BYTES = 2**26  # of vectors per file; bounds the memory of an export
CHANGED = "--no-vectors encodes the documents again (in Python vectors=False)"


@final
@dataclass(frozen=True)
class ExportedSet:
    """Description of a vector set in an export.

    Attributes:
        dim: components of a vector.
        pooled: one row per document.
        ids: every row has an id.
        static: the vectors are in the model; only ids are exported.
        codec: of the rows in the index; if segments differ, the one with the fewest bits.
    """

    dim: int
    pooled: bool
    ids: bool
    static: bool
    codec: CodecName


@final
@dataclass(frozen=True)
class Shard:
    """One file: its number of documents, and its checksum."""

    documents: int
    sha256: str


def shard_name(number: int) -> str:
    """The path of a file within an export, by its number from 0."""
    return f"vectors/{number + 1:05}.safetensors"


@final
class ShardWriter:
    """Write vectors of documents into the folder of an export, one file per 64 MiB.

    Attributes:
        shards: the finished files.
    """

    def __init__(self, folder: Path, sets: Mapping[str, ExportedSet]):
        self._folder, self._sets = folder, sets
        self.shards: list[Shard] = []
        self._checks: list[int] = []
        self._parts: list[Mapping[str, Ragged]] = []
        (folder / "vectors").mkdir()

    def append(self, documents: Sequence[Document], vectors: Mapping[str, Ragged]) -> None:
        """Add the next documents with their vectors by set."""
        self._checks += map(_check_of, documents)
        self._parts.append(vectors)
        if sum(packed.values.nbytes for part in self._parts for packed in part.values()) >= BYTES:
            self.close()

    def close(self) -> None:
        """Finish the current file, if it has documents."""
        if not self._checks:
            return
        tensors: dict[str, np.ndarray] = {"documents": np.array(self._checks, np.uint64)}
        for name, about in self._sets.items():
            packed = Ragged.concatenate([part[name] for part in self._parts])
            tensors[f"{name}.offsets"] = packed.offsets.astype(np.int64)
            if not about.static:
                tensors[f"{name}.values"] = np.ascontiguousarray(packed.values, np.float32)
            if packed.ids is not None:
                tensors[f"{name}.ids"] = packed.ids.astype(np.uint32)
        path = self._folder / shard_name(len(self.shards))
        path.write_bytes(save(tensors))  # safetensors' own file writer hides the system's error
        self.shards.append(Shard(len(self._checks), sha256_file(path)))
        self._checks, self._parts = [], []


@final
class VectorShards:
    """The vectors of an export, read in the order of its documents.

    Args:
        folder: of the export.
        sets: in the export.
        shards: its files.
        wanted: names of the sets to read.
        report: counts made when the documents were encoded (`DocumentStream.report`).
    """

    def __init__(
        self,
        folder: Path,
        sets: Mapping[str, ExportedSet],
        shards: Sequence[Shard],
        wanted: Sequence[str],
        report: Mapping[str, int],
    ):
        self._folder, self._shards, self.report = folder, shards, report
        self._sets = {name: sets[name] for name in wanted}
        self._every = sets
        self._starts = np.cumsum([0] + [shard.documents for shard in shards])
        self._last: tuple[int, _Open] | None = None

    def of(self, documents: Sequence[Document], first: int) -> dict[str, Ragged]:
        """The vectors of documents, by set.

        Args:
            documents: at least one.
            first: number of documents before them in the corpus.

        Raises:
            DataError: a file is missing or damaged, or its vectors belong to other documents.
        """
        found: list[dict[str, Ragged]] = []
        rest = list(documents)
        while rest:
            number = int(np.searchsorted(self._starts, first, side="right")) - 1
            if number >= len(self._shards):
                raise DataError(
                    f"there are vectors of {self._starts[-1]:,} documents, and the corpus has more, such as "
                    f"{rest[0].id!r}; export the index again, or {CHANGED}",
                    path=self._folder,
                )
            start, end = self._starts[number : number + 2].tolist()
            here, rest = rest[: end - first], rest[end - first :]
            found.append(self._open(number).take(first - start, here, self._sets))
            first += len(here)
        return {name: Ragged.concatenate([part[name] for part in found]) for name in self._sets}

    def _open(self, number: int) -> _Open:
        if self._last is None or self._last[0] != number:
            path = self._folder / shard_name(number)
            self._last = number, _Open(path, self._shards[number], self._every)
        return self._last[1]


@final
class _Open:
    """One file, open and checked except for its rows."""

    def __init__(self, path: Path, shard: Shard, sets: Mapping[str, ExportedSet]):
        self._path = path
        if not path.is_file():
            raise self._fault("missing")
        if sha256_file(path) != shard.sha256:
            raise self._fault("its content does not match the checksum in export.json")
        try:
            self._file = safe_open(path, framework="numpy")
            self._shapes = {key: tuple(self._file.get_slice(key).get_shape()) for key in self._file.keys()}
            self._check_keys(sets)
            self._checks = self._array("documents", np.uint64, (shard.documents,))
            self._offsets: dict[str, Int[np.ndarray, " b1"]] = {}
            self._ids: dict[str, Int[np.ndarray, " n"] | None] = {}
            for name, about in sets.items():
                self._read(name, about, shard.documents)
        except SafetensorError as error:
            raise self._fault(f"cannot be read as safetensors ({error})") from error

    def _check_keys(self, sets: Mapping[str, ExportedSet]) -> None:
        expected = {"documents"}
        for name, about in sets.items():
            expected |= {f"{name}.offsets"}
            expected |= set() if about.static else {f"{name}.values"}
            expected |= {f"{name}.ids"} if about.ids else set()
        if odd := sorted(expected ^ self._shapes.keys()):
            what = "is missing" if odd[0] in expected else "is in none of the sets of export.json"
            raise self._fault(f"the array {odd[0]!r} {what}")

    def _read(self, name: str, about: ExportedSet, documents: int) -> None:
        """Read offsets and ids of a set, and check the shape of its rows."""
        offsets = self._array(f"{name}.offsets", np.int64, (documents + 1,))
        lengths = np.diff(offsets)
        if offsets[0] != 0 or (lengths < 0).any() or (about.pooled and (lengths != 1).any()):
            rule = "rise from 0 by 1" if about.pooled else "rise from 0"
            raise self._fault(f"the offsets of {name!r} do not {rule}")
        rows = int(offsets[-1])
        if not about.static and self._shapes[f"{name}.values"] != (rows, about.dim):
            shape = self._shapes[f"{name}.values"]
            raise self._fault(f"{name!r} has values of shape {shape}, expected {(rows, about.dim)}")
        self._offsets[name] = offsets
        self._ids[name] = self._array(f"{name}.ids", np.uint32, (rows,)) if about.ids else None

    def take(
        self, first: int, documents: Sequence[Document], sets: Mapping[str, ExportedSet]
    ) -> dict[str, Ragged]:
        """The vectors of documents, from number `first` of the file."""
        own = np.array([_check_of(document) for document in documents], np.uint64)
        different = np.flatnonzero(own != self._checks[first : first + len(documents)])
        if len(different):
            raise self._fault(
                f"the vectors are not those of {documents[different[0]].id!r}: the corpus was changed after "
                f"the export; {CHANGED}"
            )
        return {name: self._rows(name, about, first, documents) for name, about in sets.items()}

    def _rows(self, name: str, about: ExportedSet, first: int, documents: Sequence[Document]) -> Ragged:
        offsets = self._offsets[name][first : first + len(documents) + 1]
        start, end = offsets[[0, -1]].tolist()
        values: Any = np.zeros((end - start, about.dim), np.float32)
        if not about.static and end > start:
            values = self._file.get_slice(f"{name}.values")[start:end]
            if values.dtype != np.float32:
                raise self._fault(f"{name!r} has values of type {values.dtype}, expected float32")
        ids = self._ids[name]
        packed = Ragged(values, offsets - start, None if ids is None else ids[start:end].astype(np.int64))
        bad = np.flatnonzero(~np.isfinite(packed.values).all(axis=1))
        if len(bad):
            at = int(np.searchsorted(packed.offsets, bad[0], side="right")) - 1
            raise self._fault(f"a vector of {documents[at].id!r} in {name!r} is NaN or infinite")
        return packed

    def _array(self, key: str, dtype: type[np.generic], shape: tuple[int, ...]) -> np.ndarray:
        if self._shapes[key] != shape:
            raise self._fault(f"{key!r} has shape {self._shapes[key]}, expected {shape}")
        found = self._file.get_tensor(key)
        if found.dtype != dtype:
            raise self._fault(f"{key!r} has type {found.dtype}, expected {np.dtype(dtype)}")
        return found

    def _fault(self, what: str) -> DataError:
        remedy = "" if CHANGED in what else f"; copy or export it again, or {CHANGED}"
        return DataError(f"{what}{remedy}", path=self._path)


def _check_of(document: Document) -> int:
    whole = json.dumps([document.id, document.title, document.text], ensure_ascii=False)
    return xxhash.xxh3_64_intdigest(whole.encode(errors="surrogatepass"))
