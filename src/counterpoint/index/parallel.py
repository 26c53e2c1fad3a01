"""Encode the batches of a build in several processes; results are returned in order."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from typing_extensions import override

from counterpoint.errors import ConfigError, DataError
from counterpoint.index.settings import BuildModel, Loadable, TextModel
from counterpoint.types import Document, Ragged

__all__ = ["Answer", "BatchEncoders", "Encoded", "Encoders", "Sent", "Worker", "encoders_of", "read_answer"]

Encoded = tuple[list[Document], Mapping[str, Ragged], int]
"""Documents, their vectors, and how many of them are longer than the model reads."""
Answer = tuple[Mapping[str, Ragged], int]
"""The vectors of a batch, and how many of its documents are longer than the model reads."""
Sent = tuple[int, list[Document], Any]
"""The number of a process, the batch it has, and what its answer is read from."""


@final
@dataclass(frozen=True)
class _Failed:
    """An encoding error: the number of the text if it fails alone, too, and the reason."""

    text: int | None
    why: str


class BatchEncoders(ABC):
    """Some processes that encode the batches of a build."""

    def __init__(self, count: int):
        self._count = count

    @final
    def encode(
        self, batches: Iterator[list[Document]], progress: Callable[[int], object]
    ) -> Iterator[Encoded]:
        """Encode every batch, in order; `progress` is called with numbers of documents done.

        Raises:
            DataError: a document cannot be encoded.
            ConfigError: a process died.
        """
        idle, busy = deque(range(self._count)), deque[Sent]()
        while True:
            while idle and (batch := next(batches, None)) is not None:
                busy.append(self._sent(idle.popleft(), batch))
            if not busy:
                return
            place, batch, _ = sent = busy.popleft()
            vectors, longer = self._answer(sent, progress)
            if (following := next(batches, None)) is None:
                idle.append(place)
            else:  # so that the process works while this batch is written
                busy.append(self._sent(place, following))
            yield batch, vectors, longer

    @abstractmethod
    def _sent(self, place: int, batch: list[Document]) -> Sent:
        """Send a batch to a process."""

    @abstractmethod
    def _answer(self, sent: Sent, progress: Callable[[int], object]) -> Answer:
        """Wait for the answer for a batch."""

    @abstractmethod
    def close(self) -> None:
        """End all processes at once."""


@final
class Encoders(BatchEncoders):
    """Processes that each load the model.

    Each has one batch at a time, so memory is bounded by the number of processes.

    Args:
        load: makes the model; sent to the processes.
        fingerprint: that the loaded model must have.
        count: number of processes.
    """

    def __init__(self, load: Callable[[], BuildModel], fingerprint: str, count: int):
        super().__init__(count)
        context = get_context("spawn")  # a fork would copy locks that other threads hold
        self._started: list[tuple[BaseProcess, Connection]] = []
        try:
            for _ in range(count):
                here, there = context.Pipe()
                process = context.Process(target=_serve, args=(there, load, fingerprint), daemon=True)
                process.start()
                there.close()
                self._started.append((process, here))
        except BaseException:
            self.close()
            raise

    @override
    def _sent(self, place: int, batch: list[Document]) -> Sent:
        connection = self._started[place][1]
        with suppress(OSError):  # the process has died; reading its answer says so
            connection.send([document.full_text for document in batch])
        return place, batch, connection

    @override
    def _answer(self, sent: Sent, progress: Callable[[int], object]) -> Answer:
        _, batch, connection = sent
        try:
            while isinstance(said := connection.recv(), int):
                progress(said)
        except (EOFError, OSError) as error:
            where = f"documents {batch[0].id!r} to {batch[-1].id!r}"
            raise ConfigError(
                f"the process that encoded {where} died, perhaps out of memory; use fewer --processes"
            ) from error
        return read_answer(said, batch)

    @override
    def close(self) -> None:
        for process, connection in self._started:
            process.terminate()
            connection.close()
        for process, _ in self._started:
            process.join()


@contextmanager
def encoders_of(model: TextModel | None, processes: int) -> Iterator[Encoders | None]:
    """Start the encoding processes of a build; None for a single process, or without a model.

    Raises:
        ConfigError: `processes` is below 1, or the model cannot be loaded in other processes.
    """
    if processes < 1:
        raise ConfigError(f"processes must be at least 1, found {processes}")
    if processes == 1 or model is None:
        yield None
        return
    if not isinstance(model, Loadable):
        raise ConfigError(f"processes={processes}: this model cannot be loaded in another process; use 1")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="counterpoint-")))
        encoders = Encoders(model.loader(scratch, processes), model.fingerprint(), processes)
        stack.callback(encoders.close)
        yield encoders


def read_answer(said: Any, batch: Sequence[Document]) -> Answer:
    """The vectors in the answer of a process, and how many documents are longer than the model reads.

    Raises:
        DataError: a document cannot be encoded.
    """
    if isinstance(said, _Failed):
        where = f"documents {batch[0].id!r} to {batch[-1].id!r}"
        what = where if said.text is None else f"document {batch[said.text].id!r}"
        raise DataError(f"{what}: cannot be encoded ({said.why})")
    return said


def _serve(connection: Connection, load: Callable[[], BuildModel], fingerprint: str) -> None:
    """Encode batches until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the build also gets Ctrl-C, and ends this process
    with suppress(EOFError, OSError):
        worker = Worker(load, fingerprint)
        while True:
            connection.send(worker.encoded(connection.recv(), connection.send))


@final
class Worker:
    """A process that encodes: it loads the model, then encodes one batch after another.

    Args:
        load: makes the model.
        fingerprint: that it must have.
    """

    def __init__(self, load: Callable[[], BuildModel], fingerprint: str):
        self._model: BuildModel | _Failed
        try:
            self._model = load()
            if self._model.fingerprint() != fingerprint:
                self._model = _Failed(None, "another model was loaded than the build's")
        except Exception as error:
            self._model = _Failed(None, _named(error))

    def encoded(self, texts: Sequence[str], progress: Callable[[int], object] = lambda done: None) -> Any:
        """The answer for a batch, which `read_answer` reads."""
        model = self._model
        if isinstance(model, _Failed):
            return model
        try:
            return model.encode_counted(texts, progress)
        except Exception as error:
            text = next((i for i, text in enumerate(texts) if _fails(model, text)), None)
            return _Failed(text, _named(error))


def _fails(model: BuildModel, text: str) -> bool:
    try:
        model.encode_counted([text])
    except Exception:
        return True
    return False


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
