"""Encode the batches of a build by processes of a Ray cluster; results are returned in order.

Batches are those of a build on one machine, so the index is the same to the last byte. A process that dies is
started again, and its batch is encoded again. Each process has one batch at a time, so documents are read no
faster than they are encoded, and memory is bounded by the number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from typing_extensions import override

from counterpoint.cluster.connecting import connected
from counterpoint.errors import ConfigError
from counterpoint.index.parallel import Answer, BatchEncoders, Sent, Worker, read_answer
from counterpoint.index.settings import BuildModel, Loadable, TextModel
from counterpoint.types import Document

__all__ = ["ray_encoders"]

TRIES = 3  # processes that may die of one batch


@contextmanager
def ray_encoders(model: TextModel, address: str, processes: int | None) -> Iterator[BatchEncoders]:
    """Start encoding processes on a cluster for a build.

    Args:
        model: must be one that other processes can load.
        address: as for `connected`.
        processes: how many; None for one per GPU, or one per processor without GPUs.

    Raises:
        ConfigError: there is no cluster, or the model cannot be loaded elsewhere.
        MissingExtraError: `ray` is not installed.
    """
    if not isinstance(model, Loadable):
        raise ConfigError("--ray: this model cannot be loaded in another process")
    with connected(address) as ray, TemporaryDirectory(prefix="counterpoint-") as scratch:
        found = ray.cluster_resources()
        gpus, cpus = int(found.get("GPU", 0)), max(1, int(found.get("CPU", 1)))
        count = processes or gpus or cpus
        load = model.loader(Path(scratch), 1 if gpus else min(count, cpus))
        yield _RayEncoders(
            ray, _Carried(load, Path(scratch)), model.fingerprint(), (count, min(gpus / count, 1))
        )


@final
class _Carried:
    """A function that loads a model, with the files that it needs from a folder of the machine that asks."""

    def __init__(self, load: Callable[[], BuildModel], folder: Path):
        self._load, self._folder = load, folder
        paths = [path for path in folder.rglob("*") if path.is_file()]
        self._files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    def __call__(self) -> BuildModel:
        for name, content in self._files.items():
            path = self._folder / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return self._load()


@final
class _RayEncoders(BatchEncoders):
    """Actors that each load the model; `resources` are the number of processes, and GPUs of each."""

    def __init__(
        self, ray: Any, load: Callable[[], BuildModel], fingerprint: str, resources: tuple[int, float]
    ):
        count, gpus = resources
        self._ray, self._fingerprint = ray, fingerprint
        self._worker = ray.remote(num_cpus=0 if gpus else 1, num_gpus=gpus)(Worker)
        self._carried = ray.put(load)
        self._actors = [self._started() for _ in range(count)]
        super().__init__(count)

    def _started(self) -> Any:
        return self._worker.remote(self._carried, self._fingerprint)

    @override
    def _sent(self, place: int, batch: list[Document]) -> Sent:
        texts = [document.full_text for document in batch]
        return place, batch, self._actors[place].encoded.remote(texts)

    @override
    def _answer(self, sent: Sent, progress: Callable[[int], object]) -> Answer:
        """The answer for a batch. A process that died is replaced, and the batch is sent again."""
        place, batch, waiting = sent
        for left in range(TRIES - 1, -1, -1):
            try:
                found = read_answer(self._ray.get(waiting), batch)
                progress(len(batch))
                return found
            except self._ray.exceptions.RayError as error:
                if not left:
                    where = f"documents {batch[0].id!r} to {batch[-1].id!r}"
                    said = next(iter(str(error).splitlines()), type(error).__name__)
                    raise ConfigError(
                        f"{TRIES} processes of the cluster died that encoded {where}, perhaps out of memory "
                        f"({said}); use fewer --processes"
                    ) from error
            self._ray.kill(self._actors[place])  # it may only be out of reach
            self._actors[place] = self._started()
            waiting = self._sent(place, batch)[2]
        raise AssertionError("unreachable")

    @override
    def close(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
