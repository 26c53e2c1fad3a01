"""`CachedModel`: stores encoded texts on disk, so that no text is encoded twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self, final

import numpy as np

from counterpoint.errors import ArtifactError
from counterpoint.index import TextModel
from counterpoint.index.settings import PassingModel
from counterpoint.types import Ragged, Side

__all__ = ["CachedModel"]

BATCH = 64  # texts encoded and committed at a time; a killed process loses at most this many
VARIABLES = 500  # keys in one query; SQLite's oldest limit is 999


class Rows(NamedTuple):
    """One text's rows of one vector set, with their ids."""

    values: np.ndarray
    ids: np.ndarray | None


Encoded = Mapping[str, Rows]
"""All vector sets of one text."""


@final
class CachedModel(PassingModel):
    """A `TextModel` with a cache. It returns the same vectors as its model and encodes each text once.

    Vectors are stored unchanged (float32, with their ids) in one SQLite file, by side and text. Each batch of
    new texts is committed before the next one is encoded.

    Args:
        model: the model that encodes.
        path: the file, created if missing. It belongs to one model.
        on_encoded: called with the number of texts newly encoded since the last call.

    Raises:
        ArtifactError: the file is damaged, or belongs to another model.
    """

    def __init__(self, model: TextModel, path: Path, on_encoded: Callable[[int], object] = lambda new: None):
        super().__init__(model)
        self.path, self.on_encoded = path, on_encoded
        fingerprint = model.fingerprint()
        self._held: dict[str, Mapping[str, Ragged]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._using():
            self._database = sqlite3.connect(path)
            self._database.execute("CREATE TABLE IF NOT EXISTS model (fingerprint TEXT)")
            self._database.execute("CREATE TABLE IF NOT EXISTS encodings (key BLOB PRIMARY KEY, value BLOB)")
            owner = self._database.execute("SELECT fingerprint FROM model").fetchone()
            if owner is None:
                self._database.execute("INSERT INTO model VALUES (?)", (fingerprint,))
            self._database.commit()
        if owner is not None and owner[0] != fingerprint:
            raise ArtifactError(
                f"contains encodings of the model {owner[0][:12]}, but this one is {fingerprint[:12]}; "
                "use another file",
                path=path,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._database.close()

    def encode_query(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """Vectors of queries, in the order of the texts."""
        if len(texts) == 1 and texts[0] in self._held:
            return self._held[texts[0]]
        return self._encode(texts, "query")

    def encode_document(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """Vectors of documents, in the order of the texts."""
        return self._encode(texts, "document")

    def hold(self, texts: Sequence[str]) -> None:
        """Hold the vectors of these queries in memory, so that a search is timed without encoding."""
        encoded = self._encode(texts, "query")
        self._held = {
            text: {name: packed.take(np.array([i])) for name, packed in encoded.items()}
            for i, text in enumerate(texts)
        }

    def _encode(self, texts: Sequence[str], side: Side) -> dict[str, Ragged]:
        text_of = {_key(text, side): text for text in texts}
        found = self._read(list(text_of))
        new = sorted(text_of.keys() - found.keys(), key=lambda key: (len(text_of[key]), text_of[key]))
        for start in range(0, len(new), BATCH):  # texts of similar length, to reduce padding
            keys = new[start : start + BATCH]
            found |= self._add(keys, [text_of[key] for key in keys], side)
        return self._packed([found[_key(text, side)] for text in texts])

    def _add(self, keys: Sequence[bytes], texts: Sequence[str], side: Side) -> dict[bytes, Encoded]:
        encode = self.model.encode_query if side == "query" else self.model.encode_document
        made = encode(texts)
        encoded: dict[bytes, Encoded] = {
            key: {
                name: Rows(packed[i], None if packed.ids is None else packed.ids_of(i))
                for name, packed in made.items()
            }
            for i, key in enumerate(keys)
        }
        with self._using(), self._database:
            rows = [(key, _to_bytes(sets)) for key, sets in encoded.items()]
            self._database.executemany("INSERT INTO encodings VALUES (?, ?)", rows)
        self.on_encoded(len(keys))
        return encoded

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Encoded]:
        found: dict[bytes, Encoded] = {}
        with self._using():
            for start in range(0, len(keys), VARIABLES):
                some = keys[start : start + VARIABLES]
                marks = ", ".join("?" * len(some))
                query = f"SELECT key, value FROM encodings WHERE key IN ({marks})"
                for key, value in self._database.execute(query, some):
                    found[key] = self._from_bytes(value)
        return found

    def _packed(self, encoded: Sequence[Encoded]) -> dict[str, Ragged]:
        packed = {}
        for name, layout in self.sets.items():
            rows = [sets[name] for sets in encoded]
            ids = [row.ids for row in rows if row.ids is not None]
            packed[name] = Ragged.from_list(
                [row.values for row in rows], ids if ids or layout.ids else None, dim=layout.dim
            )
        return packed

    def _from_bytes(self, value: bytes) -> Encoded:
        try:
            end = value.index(b"\n") + 1
            sets, at = {}, end
            for name, described in json.loads(value[:end]).items():
                arrays = []
                for dtype, shape in described:
                    size = int(np.prod(shape))
                    arrays.append(np.frombuffer(value, np.dtype(dtype), size, at).reshape(shape))
                    at += arrays[-1].nbytes
                sets[name] = Rows(arrays[0], arrays[1] if len(arrays) > 1 else None)
        except (ValueError, TypeError) as error:
            raise ArtifactError(f"damaged ({error}); delete this file", path=self.path) from error
        return sets

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Turn SQLite's errors into ones with a remedy."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise ArtifactError(
                f"cannot store encodings ({error}); free some space, or delete the file if it is damaged",
                path=self.path,
            ) from error


def _key(text: str, side: Side) -> bytes:
    return side[:1].encode() + hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _to_bytes(encoded: Encoded) -> bytes:
    """One line of JSON with the type and shape of each array, then the arrays' bytes."""
    described: dict[str, list[tuple[str, list[int]]]] = {}
    raw = []
    for name, rows in encoded.items():
        arrays = [np.ascontiguousarray(array) for array in rows if array is not None]
        described[name] = [(array.dtype.str, list(array.shape)) for array in arrays]
        raw += [array.tobytes() for array in arrays]
    return json.dumps(described).encode() + b"\n" + b"".join(raw)
