"""Start Ray here, or connect to a cluster that runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from counterpoint.errors import ConfigError, MissingExtraError

__all__ = ["LOCAL", "connected"]

LOCAL = "local"
"""Instead of the address of a cluster: start one on this machine."""
SECONDS = 10.0  # for a machine to accept a connection
MODE = "RAY_AUTH_MODE"
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""With "0", Ray's processes listen on 127.0.0.1, as on macOS and Windows. Ray reads it when imported."""


@contextmanager
def connected(address: str, cpus: int | None = None) -> Iterator[ModuleType]:
    """Connect to Ray for a block; yield the package. A connection that exists already is used and kept.

    Args:
        address: of a cluster, such as "10.0.0.1:6379", or "local" to start one on this machine, which ends
            with the block. Only this machine can reach it, unless `ray` was imported before.
        cpus: processors of a local one; None for those of this machine.

    Raises:
        MissingExtraError: `ray` is not installed.
        ConfigError: there is no cluster at the address, or none can be started.
    """
    if address == LOCAL:
        os.environ.setdefault(LOOPBACK, "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--ray", package="ray", extra="ray") from error
    if ray.is_initialized():
        yield ray
        return
    where = {"num_cpus": cpus, "include_dashboard": False} if address == LOCAL else {}
    if address != LOCAL:
        _check_reachable(address)
        _use_token()
    try:
        ray.init(address=address, log_to_driver=False, **where)
    except Exception as error:  # Ray raises plain exceptions of many kinds
        raise ConfigError(f"--ray {address}: cannot connect ({_why(error)})") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Check that something listens. Ray tries for minutes, and logs every attempt."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"--ray {address}: not an address such as 10.0.0.1:6379 ({error})") from error
    if host is None or port is None:  # "auto", which Ray looks up
        return
    try:
        socket.create_connection((host, port), SECONDS).close()
    except OSError as error:
        raise ConfigError(
            f"--ray {address}: cannot connect ({error}); start a cluster there with: "
            f"ray start --head --port {port}"
        ) from error


def _use_token() -> None:
    """Send the token of this account, if it has one: `ray start --head` asks for it then.

    Ray does this for clusters that it finds by itself, and not for an address.
    """
    files = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    if MODE not in os.environ and (os.environ.get("RAY_AUTH_TOKEN") or Path(files).is_file()):
        os.environ[MODE] = "token"
        from ray._raylet import Config  # pyright: ignore[reportAttributeAccessIssue]

        Config.initialize("")  # it has read the environment already


def _why(error: BaseException) -> str:
    """What Ray says in one line, and what to do if the cluster refuses the token."""
    chain, texts = error, [str(error)]
    while (chain := chain.__cause__ or chain.__context__) is not None:
        texts.append(str(chain))
    first = next(iter(texts[0].splitlines()), type(error).__name__)
    if any(word in text for text in texts for word in ("Unauthenticated", "InvalidAuthToken")):
        return (
            f"{first}; the cluster asks for another token: copy ~/.ray/auth_token of its first machine to "
            f"this account, and unset {MODE} or set it to token"
        )
    return first
