"""`DocumentStream`: a stream of documents, encoded in batches and counted on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, cast, final

from counterpoint.errors import DataError
from counterpoint.index.parallel import Encoders
from counterpoint.index.progress import Progress
from counterpoint.index.settings import BuildModel, TextModel
from counterpoint.types import Document, Ragged

if TYPE_CHECKING:
    from counterpoint.index.vector_shards import VectorShards

__all__ = ["BATCH", "Batch", "DocumentStream"]

BATCH = 512  # documents encoded and written at a time; bounds the memory of a build

Batch = tuple[list[Document], Mapping[str, Ragged] | None]
"""Documents and their vectors by set; None for those that an interrupted build has encoded."""


@final
class DocumentStream:
    """Documents that are to be indexed, read once.

    Args:
        documents: streamed; never held whole.
        model: encodes them; None for a lexical index.
        on_progress: called with the number of documents done, within a batch, too: one may take minutes.
        encoders: processes that encode; None for this one.
        given: the documents' vectors, where they were encoded before; the model encodes nothing.

    Attributes:
        encoder_seconds: that were spent in the model so far, or waiting for other processes.
        longer: documents that have more word-pieces than the model reads, so far.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        model: TextModel | None,
        on_progress: Callable[[int], None] = lambda done: None,
        encoders: Encoders | None = None,
        given: VectorShards | None = None,
    ):
        self._documents, self._encoders, self._given = documents, encoders, given
        self._on_progress = on_progress
        self._model = model
        self._counting = model if isinstance(model, BuildModel) else None
        self.longer, self.encoder_seconds = 0, 0.0

    def batches(self, before: Progress | None = None) -> Iterator[Batch]:
        """The documents, `BATCH` at a time, with their vectors; without a model there are none.

        Args:
            before: how far an interrupted build came.

        Raises:
            DataError: the operating system or a network gave an error: it is one of the source.
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
            yield batch, vectors

    def report(self) -> dict[str, int]:
        """What was counted, once all was read.

        With a model `longest`, the word-pieces that it reads of a document, and `longer`, the documents (or
        passages) that have more; nothing without one.
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
        made = cast(Encoders, self._encoders).encode(batches, self._counter(done))
        while True:
            started = time.perf_counter()
            batch, vectors, longer = next(made, ([], {}, 0))
            self.encoder_seconds += time.perf_counter() - started
            if not batch:
                return
            self.longer += longer
            yield batch, vectors

    def _counter(self, done: int) -> Callable[[int], None]:
        """What is called with more documents that are done after so many."""

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
