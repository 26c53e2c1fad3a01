"""`DocumentStream`: a stream of documents, encoded in batches and counted on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import final

from counterpoint.errors import DataError
from counterpoint.index.progress import Progress
from counterpoint.index.settings import BuildModel, TextModel
from counterpoint.types import Document, Ragged

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

    Attributes:
        encoder_seconds: that were spent in the model so far.
        longer: documents that have more word-pieces than the model reads, so far.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        model: TextModel | None,
        on_progress: Callable[[int], None] = lambda done: None,
    ):
        self._documents = documents
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
        encoded, self.longer = (0, 0) if before is None else (before.documents, before.longer)
        while batch := list(islice(stream, min(BATCH, encoded - done) if done < encoded else BATCH)):
            started, vectors = time.perf_counter(), None
            if done >= encoded:
                vectors = self._encoded([document.full_text for document in batch], done)
            self.encoder_seconds += time.perf_counter() - started
            yield batch, vectors
            done += len(batch)
            self._on_progress(done)

    def report(self) -> dict[str, int]:
        """What was counted, once all was read.

        With a model `longest`, the word-pieces that it reads of a document, and `longer`, the documents (or
        passages) that have more; nothing without one.
        """
        return {} if self._counting is None else {"longest": self._counting.longest, "longer": self.longer}

    def _encoded(self, texts: list[str], done: int) -> Mapping[str, Ragged]:
        """The vectors of a batch; `done` documents were before it."""

        def count(more: int) -> None:
            nonlocal done
            done += more
            self._on_progress(done)

        if self._counting is None:
            return {} if self._model is None else self._model.encode_document(texts)
        vectors, longer = self._counting.encode_counted(texts, count)
        self.longer += longer
        return vectors

    def _read(self) -> Iterator[Document]:
        try:
            yield from self._documents
        except OSError as error:
            raise DataError(f"the source cannot be read: {error}") from error
