"""Start Ray here, or connect to a cluster that runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from counterpoint.errors import ConfigError, MissingExtraError

__all__ = ["LOCAL", "connected", "ray_module"]

LOCAL = "local"
"""Instead of the address of a cluster: start one on this machine."""


def ray_module() -> ModuleType:
    """The package `ray`.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--ray", package="ray", extra="ray") from error
    return ray


@contextmanager
def connected(address: str, cpus: int | None = None) -> Iterator[ModuleType]:
    """Connect to Ray for a block; yield the package. A connection that exists already is used and kept.

    Args:
        address: of a cluster, such as "10.0.0.1:6379", or "local" to start one on this machine, which ends
            with the block.
        cpus: processors of a local one; None for those of this machine.

    Raises:
        MissingExtraError: `ray` is not installed.
        ConfigError: there is no cluster at the address, or none can be started.
    """
    ray = ray_module()
    if ray.is_initialized():
        yield ray
        return
    where = {"num_cpus": cpus, "include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address=address, log_to_driver=False, **where)
    except Exception as error:  # Ray raises plain exceptions of many kinds
        raise ConfigError(f"--ray {address}: cannot connect ({error})") from error
    try:
        yield ray
    finally:
        ray.shutdown()
