"""`ExportedModel`: a model for searchers that encodes queries without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.encode.choice import EachToken, EachWord
from counterpoint.encode.rows import Row, map_words
from counterpoint.encode.sources import package_folder
from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.encode.words import WordSettings
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import TextModel, VectorSet
from counterpoint.onnx_encoder.description import GRAPH, NAME, Description, Embeddings
from counterpoint.onnx_encoder.integer_session import IntegerSession
from counterpoint.onnx_encoder.places import Mapped
from counterpoint.onnx_encoder.session import Session, check_runtime
from counterpoint.recent import Recent
from counterpoint.types import Ragged, Side, Span

__all__ = ["ExportedModel", "open_export"]

LOWEST = np.finfo(np.float32).min
READ = 128  # texts whose tokens are kept, as an explanation asks for spans and then ids of the same texts


@final
class ExportedModel:
    """The exported query side of a model, and the model itself for documents.

    Args:
        description: of the export.
        graph: in ONNX; computes vectors.
        files: by their names in the description.
        full: loads the model, with torch, once documents must be encoded.
        int8: round the matrices of the graph to 8 bits, and compute it without ONNX Runtime.

    Attributes:
        batches: False: queries are encoded one by one, by as many threads as call.
    """

    batches = False

    def __init__(
        self,
        description: Description,
        graph: bytes,
        files: Mapping[str, Mapped],
        full: Callable[[], TextModel],
        int8: bool = False,
    ):
        self.description = description
        self._graph, self._files, self._load, self._int8 = graph, files, full, int8
        self._lock = Lock()
        self._read: Recent[Row] = Recent(READ)

    # -- without the model ---------------------------------------------------------------------------------

    @property
    def sets(self) -> Mapping[str, VectorSet]:
        """The vector sets by name."""
        return self.description.sets

    def fingerprint(self) -> str:
        """Fingerprint of the exported model."""
        return self.description.fingerprint

    def encode_query(self, texts: Sequence[str]) -> dict[str, Ragged]:
        """Encode queries; vectors are in the order of the texts."""
        made = [self._vectors(row) for row in self._rows(texts, "query")]
        return {
            name: Ragged.from_list(
                [values[name] for values, _ in made],
                [ids[name] for _, ids in made] if layout.ids else None,
                dim=layout.dim,
            )
            for name, layout in self.sets.items()
        }

    def spans(self, texts: Sequence[str], name: str, side: Side) -> list[list[Span]]:
        """For every text, the span of each row of a set, including rows that an index drops."""
        choice, name_of = self._choices(side)[name], self._tokenizers[side].name_of
        return [choice.spans(row, side, name_of) for row in self._rows(texts, side)]

    def row_ids(self, texts: Sequence[str], name: str, side: Side) -> list[Int[np.ndarray, " n"]]:
        """For every text, the ids of the rows, in the order of `spans`."""
        return [self._choices(side)[name].ids(row, side) for row in self._rows(texts, side)]

    def table(self, name: str) -> Float[np.ndarray, "v d"]:
        """The vector of every vocabulary id in a static set.

        Raises:
            ConfigError: the set is not static.
        """
        if not self.sets[name].static:
            raise ConfigError(f"{name!r} has no table: its vectors depend on the text around a token")
        (row,) = self._rows([""], "query")
        fed, _ = self._fed(row)
        for source, embeddings in self.description.embeddings.items():
            if embeddings.positions is None:
                fed[source] = self._weights[embeddings.words]
        return self._session.run(fed)[name]

    # -- with the model --------------------------------------------------------------------------------

    @cached_property
    def _loaded(self) -> TextModel:
        model = self._load()
        if model.fingerprint() != self.fingerprint():
            raise ArtifactError(
                f"the model found now is {model.fingerprint()[:12]}, but queries were exported from "
                f"{self.fingerprint()[:12]}; search with the model that built the index, or build "
                "the index again with this one"
            )
        return model

    def full(self) -> TextModel:
        """The model itself; on first use, torch is imported and the weights are read.

        Raises:
            ArtifactError: the model is missing or has changed.
        """
        with self._lock:
            return self._loaded

    def encode_document(self, texts: Sequence[str]) -> Mapping[str, Ragged]:
        """Encode documents with the model itself."""
        return self.full().encode_document(texts)

    def gate_weights(self, texts: Sequence[str], name: str) -> Ragged:
        """A gate's value for each document row, computed by the model itself."""
        return self.full().gate_weights(texts, name)

    # -- steps -----------------------------------------------------------------------------------------

    @cached_property
    def _tokenizers(self) -> dict[Side, Tokenizer]:
        made: dict[tuple[str, str | None, str | None], Tokenizer] = {}
        found: dict[Side, Tokenizer] = {}
        for side, said in self.description.sides.items():
            key = said.tokenizer, said.pad, said.mask
            if key not in made:
                mapped = self._files[said.tokenizer]
                made[key] = Tokenizer.parse(bytes(mapped.raw), mapped.path, pad=said.pad, mask=said.mask)
            found[side] = made[key]
        return found

    @cached_property
    def _weights(self) -> dict[str, Float[np.ndarray, ...]]:
        weights = self.description.weights
        return {name: self._files[one.file].floats(one.offset, one.shape) for name, one in weights.items()}

    @cached_property
    def _session(self) -> Session | IntegerSession:
        looked_up = {name for one in self.description.embeddings.values() for name in one.names}
        graph, weights = self._graph, {k: v for k, v in self._weights.items() if k not in looked_up}
        if not self._int8:
            return Session(graph, weights)
        if self.description.network is None:
            raise ArtifactError(
                "the export of the queries is of an earlier version, without what 8 bits need; use another "
                "backend, or build the index again"
            )
        return IntegerSession(self.description.network, weights)

    def _choices(self, side: Side) -> Mapping[str, Any]:
        return self.description.sides[side].choices

    def _rows(self, texts: Sequence[str], side: Side) -> list[Row]:
        with self._lock:
            tokenizer = self._tokenizers[side]
        reading = self.description.sides[side].reading
        return self._read.each(texts, lambda missing: reading.rows(missing, tokenizer), side)

    def _fed(self, row: Row) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        fed = {name: self._embedded(row, one) for name, one in self.description.embeddings.items()}
        fed["query.bias"] = np.where(row.attended, np.float32(0), LOWEST)  # no attention to the others
        attended = row.attended.astype(np.float32)[None]
        fed["query.mean"] = attended / np.maximum(attended.sum(), np.float32(1))
        ids = {}
        for name, choice in self._choices("query").items():
            if isinstance(choice, EachWord):
                ids[name], fed[f"words.{name}"] = _words_of(row, choice.words)
            elif isinstance(choice, EachToken):
                ids[name] = choice.ids(row, "query")
        with self._lock:
            inputs = self._session.inputs
        return {name: value for name, value in fed.items() if name in inputs}, ids

    def _embedded(self, row: Row, embeddings: Embeddings) -> Float[np.ndarray, "t e"]:
        made = self._weights[embeddings.words][row.ids]
        if embeddings.positions is None or embeddings.types is None:
            return made
        return made + self._weights[embeddings.types][0] + self._weights[embeddings.positions][: len(row)]

    def _vectors(self, row: Row) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        fed, ids = self._fed(row)
        made = self._session.run(fed)
        for name, choice in self._choices("query").items():
            if isinstance(choice, EachToken):
                made[name] = made[name][choice.kept(row, "query")]
        return made, ids


def _words_of(row: Row, settings: WordSettings) -> tuple[Int[np.ndarray, " w"], Float[np.ndarray, "w t"]]:
    """The ids of the distinct words, and for each the weights of the mean over its positions."""
    ids, rows, _ = map_words(row, settings)
    member = (rows.T[None] == np.arange(len(ids))[:, None, None]).any(1).astype(np.float32)
    return ids, member / np.maximum(member.sum(1, keepdims=True), np.float32(1))


def open_export(
    folder: Path,
    expected: Mapping[str, str],
    model: Callable[[], Path | None],
    full: Callable[[], TextModel],
    *,
    int8: bool | None = False,
) -> ExportedModel:
    """Open an export after checking all files that it refers to.

    Args:
        folder: of the export.
        expected: SHA-256 of the files in it.
        model: finds the folder of the model, if weights are in it.
        full: loads the model itself.
        int8: round the matrices to 8 bits, and compute without ONNX Runtime; None for what the export says.

    Raises:
        ArtifactError: a file is missing, damaged or different from the exported one; or ONNX Runtime is not
            installed, which only `int8` does without.
    """
    text, graph = (_checked(folder / name, expected.get(name)) for name in (NAME, GRAPH))
    description = Description.parse(text.decode(), folder / NAME)
    if int8 is None:
        int8 = description.bits == 8
    if not int8:
        check_runtime()

    def folder_of(base: str) -> Path | None:
        if base.startswith("package:"):
            return package_folder(base.removeprefix("package:"))
        return folder if base == "index" else model()

    files = {name: ref.opened(folder_of) for name, ref in description.files.items()}
    return ExportedModel(description, graph, files, full, int8)


def _checked(path: Path, sha256: str | None) -> bytes:
    try:
        found = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"cannot be read: {error.strerror}", path=path) from error
    if sha256 is not None and hashlib.sha256(found).hexdigest() != sha256:
        raise ArtifactError("its content does not match the checksum; build the index again", path=path)
    return found
