"""Serve the shards of an index by Ray Serve: processes that each search one shard, with replicas.

Ray Serve starts a replica again that has died, and sends requests to the others meanwhile. Every replica
follows the commits of the index, so a change needs no new deployment. Servers of the same index share the
shards, and the last one to leave ends them. All machines of the cluster must see the folder of the index
under the same path; a replica reads the vectors and postings of its shard only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, final

from typing_extensions import override

from counterpoint.cluster.connecting import connected
from counterpoint.cluster.presence import Presence
from counterpoint.errors import CounterpointError
from counterpoint.index import Index
from counterpoint.search.fleet import SECONDS, Fleet, ShardGone, Waiting, shard_starts
from counterpoint.search.shard import Found, Shard
from counterpoint.version import version

__all__ = ["ray_fleet"]

ONGOING = 8  # requests that a replica takes at a time


@contextmanager
def ray_fleet(
    folder: Path, address: str, *, replicas: int = 1, partial: bool = False, seconds: float = SECONDS
) -> Iterator[Fleet]:
    """Start the shards of an index on a cluster, for a block.

    Args:
        folder: of the index, absolute, as all machines see it.
        address: as for `connected`.
        replicas: processes per shard.
        partial: as for `Fleet`.
        seconds: as for `Fleet`.

    Raises:
        ConfigError: there is no cluster.
        MissingExtraError: `ray` is not installed.
    """
    with connected(address), closing(_RayFleet(folder, replicas, partial, seconds)) as fleet:
        yield fleet


@final
class _RayFleet(Fleet):
    """Shards in a Ray Serve application.

    It is named after the folder, the number of shards and of replicas, and the version of this package.
    Fleets for which all of these are equal share it.
    """

    def __init__(self, folder: Path, replicas: int, partial: bool, seconds: float):
        from ray import serve

        super().__init__(partial, seconds)
        with Index(folder) as index:
            numbers = range(max(index.manifest.shards, 1 + max(shard_starts(index), default=0)))
        told = f"counterpoint {version()} {len(numbers)}x{replicas} {folder.resolve().as_posix()}"
        self._name = told.replace("/", "|")
        # Without its HTTP proxy, which would take port 8000 of every machine.
        serve.start(proxy_location="Disabled")
        self._presence = Presence(self._name)
        known = serve.status().applications.get(self._name)
        if known is None or known.status not in ("RUNNING", "DEPLOYING"):
            self._deploy(folder, numbers, replicas)
        self._handles = {n: serve.get_deployment_handle(_named(n), app_name=self._name) for n in numbers}

    def _deploy(self, folder: Path, numbers: range, replicas: int) -> None:
        """Start the shards. It would replace those that run, while others use them."""
        from ray import serve

        shards = {}
        for number in numbers:
            deployed: Any = serve.deployment(
                name=_named(number),
                num_replicas=replicas,
                max_ongoing_requests=ONGOING,
                ray_actor_options={"num_cpus": 0.1},  # they wait most of the time; machines are shared
            )
            shards[number] = deployed(_Replica).bind(str(folder.resolve()), number)
        entrance: Any = serve.deployment(ray_actor_options={"num_cpus": 0})(_Entrance)
        serve.run(entrance.bind(shards), name=self._name, route_prefix=None)

    @override
    def send(self, number: int, call: str, *given: Any, **named: Any) -> Waiting:
        return _Waiting(getattr(self._handles[number], call).remote(*given, **named), number)

    @override
    def close(self) -> None:
        from ray import serve

        if self._presence.leave():
            serve.delete(self._name)


def _named(number: int) -> str:
    return f"shard-{number:05d}"


@final
class _Waiting:
    """The result of a call that is under way."""

    def __init__(self, response: Any, number: int):
        self._response, self._number = response, number

    def result(self, timeout: float | None = None) -> Any:
        """Wait for it.

        Raises:
            ShardGone: no replica answers, or the cluster has the shard no more.
            TimeoutError: no replica has answered in time.
        """
        from ray.exceptions import RayError
        from ray.serve.exceptions import RayServeException

        try:
            return self._response.result(timeout_s=timeout)
        except CounterpointError as error:  # what the shard itself says
            raise getattr(error, "cause", error) from error
        except TimeoutError:
            raise
        except RayServeException as error:  # its text names the folder of the index
            why = "it was stopped on the cluster: start this server again"
            raise ShardGone(f"shard {self._number} gives no answer ({why})") from error
        except RayError as error:
            why = next(iter(str(error).splitlines()), type(error).__name__)
            raise ShardGone(f"shard {self._number} gives no answer ({why})") from error

    def cancel(self) -> object:
        return self._response.cancel()


@final
class _Replica:
    """A process that calls the `Shard` of a number, which is opened when the first request comes."""

    def __init__(self, folder: str, number: int):
        from counterpoint.library.stored import encoder_of

        self._folder, self._number = folder, number
        self._open = lambda: Shard(folder, number, encoder_of)
        self._shard: Shard | None = None

    def best(self, *given: Any, **named: Any) -> list[Found]:
        return self._opened().best(*given, **named)

    def scores(self, *given: Any) -> Any:
        return self._opened().scores(*given)

    def alive(self) -> bool:
        return self._opened().alive()

    def process(self) -> int:
        return os.getpid()

    def check_health(self) -> None:
        """Asked by Ray Serve, which starts a replica again that is not well."""
        self._opened()

    def _opened(self) -> Shard:
        if self._shard is None:
            self._shard = self._open()
        return self._shard


@final
class _Entrance:
    """What makes the shards one application; it is never asked."""

    def __init__(self, shards: dict[int, Any]):
        self._shards = shards
