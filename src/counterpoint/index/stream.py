"""`DocumentStream`: a stream of documents, encoded in batches and counted on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, cast, final

from counterpoint.errors import DataError
from counterpoint.index.parallel import BatchEncoders
from counterpoint.index.progress import Progress
from counterpoint.index.settings import BuildModel, TextModel
from counterpoint.index.token_pooling import token_pooled
from counterpoint.types import Document, Ragged

if TYPE_CHECKING:
    from counterpoint.index.vector_shards import VectorShards

__all__ = ["BATCH", "Batch", "DocumentStream"]

BATCH = 512  # documents encoded and written at a time; bounds the memory of a build

Batch = tuple[list[Document], Mapping[str, Ragged] | None]
"""Documents and their vectors by set; None for documents that an interrupted build has encoded."""


@final
class DocumentStream:
    """Documents to index, read once.

    Args:
        documents: a stream; never held in memory as a whole.
        model: encodes them; None for a lexical index.
        on_progress: called with the number of documents done, also within a batch, which may take minutes.
        encoders: processes that encode; None for this process.
        given: vectors of the documents that were encoded before, which are taken as they are; the model
            encodes nothing.
        pool: for each set that is pooled (`counterpoint.index.token_pooling`), the factor.

    Attributes:
        encoder_seconds: time spent so far in the model, or waiting for other processes.
        longer: number of documents so far with more word-pieces than the model reads.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        model: TextModel | None,
        on_progress: Callable[[int], None] = lambda done: None,
        encoders: BatchEncoders | None = None,
        given: VectorShards | None = None,
        pool: Mapping[str, float] = MappingProxyType({}),
    ):
        self._documents, self._encoders, self._given = documents, encoders, given
        self._on_progress, self._pool = on_progress, {} if given is not None else pool
        self._model = model
        self._counting = model if isinstance(model, BuildModel) else None
        self.longer, self.encoder_seconds = 0, 0.0

    def batches(self, before: Progress | None = None) -> Iterator[Batch]:
        """The documents, `BATCH` at a time, with their vectors: none without a model, or if encoded `before`.

        Raises:
            DataError: the source cannot be read: the operating system or the network gave an error.
        """
        stream, done = self._read(), 0
        kept, self.longer = (0, 0) if before is None else (before.documents, before.longer)
        while done < kept and (batch := list(islice(stream, min(BATCH, kept - done)))):
            done += len(batch)
            self._on_progress(done)
            yield batch, None
        rest = iter(lambda: list(islice(stream, BATCH)), [])
        encode = self._here if self._encoders is None else self._elsewhere
        if self._given is not None:
            encode = self._before
        for batch, vectors in encode(rest, done):
            done += len(batch)
            self._on_progress(done)
            every = vectors or {}
            fewer = {name: token_pooled(every[name], factor) for name, factor in self._pool.items()}
            yield batch, {**every, **fewer}

    def report(self) -> dict[str, int]:
        """The counts, once all documents were read; empty without a model.

        `longest` is the number of word-pieces that the model reads of a document, `longer` the number of
        documents (or passages) that have more.
        """
        if self._given is not None:
            return dict(self._given.report)
        return {} if self._counting is None else {"longest": self._counting.longest, "longer": self.longer}

    def _here(self, batches: Iterator[list[Document]], done: int) -> Iterator[Batch]:
        for batch in batches:
            texts, longer = [document.full_text for document in batch], 0
            started = time.perf_counter()
            if self._counting is not None:
                vectors, longer = self._counting.encode_counted(texts, self._counter(done))
            else:
                vectors = {} if self._model is None else self._model.encode_document(texts)
            self.encoder_seconds += time.perf_counter() - started
            self.longer += longer
            done += len(batch)
            yield batch, vectors

    def _before(self, batches: Iterator[list[Document]], done: int) -> Iterator[Batch]:
        given = cast("VectorShards", self._given)
        for batch in batches:
            yield batch, given.of(batch, done)
            done += len(batch)

    def _elsewhere(self, batches: Iterator[list[Document]], done: int) -> Iterator[Batch]:
        made = cast(BatchEncoders, self._encoders).encode(batches, self._counter(done))
        while True:
            started = time.perf_counter()
            batch, vectors, longer = next(made, ([], {}, 0))
            self.encoder_seconds += time.perf_counter() - started
            if not batch:
                return
            self.longer += longer
            yield batch, vectors

    def _counter(self, done: int) -> Callable[[int], None]:
        """A callback that takes the number of further documents done, and starts from `done`."""

        def count(more: int) -> None:
            nonlocal done
            done += more
            self._on_progress(done)

        return count

    def _read(self) -> Iterator[Document]:
        try:
            yield from self._documents
        except OSError as error:
            raise DataError(f"the source cannot be read: {error}") from error
