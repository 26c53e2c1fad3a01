"""Encode the batches of a build by processes of a Ray cluster; results are returned in order.

Batches are those of a build on one machine, so the index is the same to the last byte. A process that dies is
started again, and its batch is encoded again. Each process has one batch at a time, so documents are read no
faster than they are encoded, and memory is bounded by the number of processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from typing_extensions import override

from counterpoint.cluster.connecting import connected
from counterpoint.errors import ConfigError
from counterpoint.index.parallel import BatchEncoders, Encoded, Worker, read_answer
from counterpoint.index.settings import BuildModel, Loadable
from counterpoint.types import Document

__all__ = ["RayEncoders", "ray_encoders"]

RETRIES = 2  # times that a batch is tried again after its process died


@contextmanager
def ray_encoders(model: BuildModel, address: str, processes: int | None) -> Iterator[BatchEncoders]:
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
        yield RayEncoders(
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
class RayEncoders(BatchEncoders):
    """Actors that each load the model.

    Args:
        ray: the package, connected.
        load: makes the model.
        fingerprint: that the loaded model must have.
        resources: number of processes, and GPUs of each.
    """

    def __init__(
        self, ray: Any, load: Callable[[], BuildModel], fingerprint: str, resources: tuple[int, float]
    ):
        count, gpus = resources
        self._ray = ray
        actor = ray.remote(num_cpus=0 if gpus else 1, num_gpus=gpus, max_restarts=-1)(Worker)
        carried = ray.put(load)
        self._actors = [actor.remote(carried, fingerprint) for _ in range(count)]

    @override
    def encode(
        self, batches: Iterator[list[Document]], progress: Callable[[int], object]
    ) -> Iterator[Encoded]:
        idle = deque(self._actors)
        busy: deque[tuple[Any, list[Document], Any]] = deque()
        while True:
            while idle and (batch := next(batches, None)) is not None:
                busy.append(self._sent(idle.popleft(), batch))
            if not busy:
                return
            actor, batch, waiting = busy.popleft()
            vectors, longer = self._answer(batch, waiting)
            progress(len(batch))
            if (following := next(batches, None)) is None:
                idle.append(actor)
            else:  # so that the process works while this batch is written
                busy.append(self._sent(actor, following))
            yield batch, vectors, longer

    def _sent(self, actor: Any, batch: list[Document]) -> tuple[Any, list[Document], Any]:
        texts = [document.full_text for document in batch]
        return actor, batch, actor.encoded.options(max_task_retries=RETRIES).remote(texts)

    def _answer(self, batch: list[Document], waiting: Any) -> tuple[Mapping[str, Any], int]:
        try:
            said = self._ray.get(waiting)
        except self._ray.exceptions.RayError as error:
            where = f"documents {batch[0].id!r} to {batch[-1].id!r}"
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ConfigError(
                f"a process of the cluster that encoded {where} died {RETRIES + 1} times, perhaps out of memory "
                f"({told}); use fewer --processes"
            ) from error
        return read_answer(said, batch)

    @override
    def close(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
