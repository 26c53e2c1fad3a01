"""Settings of the server: from the command line, the environment and a TOML file, in this order."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self, final, get_args

from counterpoint.errors import ConfigError, DataError
from counterpoint.library.options import BACKEND, Backend

__all__ = ["ServeSettings"]

PREFIX = "COUNTERPOINT_"
LISTS = ("read_keys", "write_keys", "cors")
MIB = 2**20
KEY = "COUNTERPOINT_KEY"  # the client's
LIKE = 0.9  # how alike a misspelt name is, of 1


@final
@dataclass(frozen=True)
class ServeSettings:
    """How indexes are served.

    Attributes:
        host: address to listen on. Every address beyond this machine needs keys.
        port: port to listen on; 0 for any free one.
        read_keys: keys that may search. Without any key, everybody who reaches the port may do everything.
        write_keys: keys that may also change indexes.
        cors: origins of web pages that may call the API; none by default.
        max_body: bytes of a request, at most.
        max_batch: queries, texts or documents of a request, at most.
        max_query: characters of a query, at most.
        max_text: characters of a text to rerank, at most.
        max_k: documents of an answer, at most.
        seconds: time for a search, after which the answer is 503. Also the time for a request to arrive and
            for an answer to be read, after which the connection is cut.
        threads: searches that run at the same time.
        waiting: requests that may wait for a thread; more are answered 503 at once.
        connections: connections that may be open; more are answered 503 and closed at once.
        ray: search the shards of the indexes on this Ray cluster; "local" starts one on this machine.
        replicas: processes per shard on the cluster.
        partial: answer without the shards that give no answer, and name them in the answer; otherwise the
            answer is 503.
        backend: what encodes queries, see `counterpoint.library.options.Backend`.
        log_texts: write queries to the log. Documents are never written there.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    read_keys: tuple[str, ...] = ()
    write_keys: tuple[str, ...] = ()
    cors: tuple[str, ...] = ()
    max_body: int = 8 * MIB
    max_batch: int = 256
    max_query: int = 4096
    max_text: int = 32768
    max_k: int = 1000
    seconds: float = 30.0
    threads: int = 2
    waiting: int = 128
    connections: int = 512
    ray: str = ""
    replicas: int = 1
    partial: bool = False
    backend: Backend = BACKEND
    log_texts: bool = False

    def __post_init__(self) -> None:
        faults = [
            f"{name} must be at least 1, found {getattr(self, name)}"
            for name in (
                "max_body",
                "max_batch",
                "max_query",
                "max_text",
                "max_k",
                "threads",
                "waiting",
                "connections",
                "replicas",
            )
            if getattr(self, name) < 1
        ]
        if not self.ray and (self.replicas != 1 or self.partial):
            faults.append("replicas and partial are settings of shards on a cluster; give ray, too")
        if self.backend not in get_args(Backend):
            names = ", ".join(get_args(Backend))
            faults.append(f"backend must be one of {names}, found {self.backend!r}")
        if not 0 <= self.port < 2**16:
            faults.append(f"port must be between 0 and 65535, found {self.port}")
        if not self.seconds > 0:
            faults.append(f"seconds must be above 0, found {self.seconds}")
        if any(len(key) < SHORTEST or not key.isascii() for key in self.read_keys + self.write_keys):
            faults.append(
                f"a key needs at least {SHORTEST} ASCII characters; make one with: openssl rand -hex 24"
            )
        if not self.is_loopback and not self.read_keys + self.write_keys:
            faults.append(
                f"{self.host} can be reached from other machines, and there are no keys; set "
                f"{PREFIX}READ_KEYS and {PREFIX}WRITE_KEYS, or use --host 127.0.0.1"
            )
        if faults:
            raise ConfigError(*faults)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return self.host == "localhost"

    @classmethod
    def gathered(
        cls, given: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None
    ) -> Self:
        """Settings from several places. The command line wins over the environment, which wins over the file.

        Args:
            given: from the command line; None means not given.
            environment: variables such as `COUNTERPOINT_READ_KEYS=key1,key2`.
            file: TOML with the same names in lower case.

        Raises:
            ConfigError: a name is unknown, or a value is invalid.
            DataError: the file cannot be read.
        """
        values = {} if file is None else _from_file(file)
        for field in fields(cls):
            text = environment.get(PREFIX + field.name.upper())
            if text is not None:
                values[field.name] = _parsed(field.name, text)
        values |= {name: value for name, value in given.items() if value is not None}
        return cls(**values)

    @classmethod
    def misspelt(cls, environment: Mapping[str, str]) -> list[str]:
        """A note for each variable whose name is nearly that of a setting; others are not ours."""
        known = {PREFIX + field.name.upper() for field in fields(cls)}
        named = [name for name in environment if name.startswith(PREFIX) and name not in known | {KEY}]
        hints = {name: get_close_matches(name, known, 1, LIKE) for name in named}
        return [
            f"{name} is no setting, and is ignored; did you mean {found[0]}?"
            for name, found in hints.items()
            if found
        ]


SHORTEST = 16  # characters of a key


def _from_file(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=file) from error
    except ValueError as error:
        raise DataError(f"not valid TOML ({error})", path=file) from error
    known = {field.name: field.default for field in fields(ServeSettings)}
    faults = [
        f"{file}: unknown setting {name!r}; expected {', '.join(known)}"
        for name in found
        if name not in known
    ]
    for name, value in found.items():
        if name in LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                faults.append(f"{file}: {name} must be a list of texts, found {value!r}")
            found[name] = tuple(value) if isinstance(value, list) else ()
        elif name in known and not _has_type_of(known[name], value):
            faults.append(f"{file}: {name} must be {type(known[name]).__name__}, found {value!r}")
    if faults:
        raise ConfigError(*faults)
    return found


def _has_type_of(default: Any, value: Any) -> bool:
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def _parsed(name: str, text: str) -> Any:
    default = getattr(ServeSettings, name)
    if name in LISTS:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, bool):
        if text.lower() not in ("1", "true", "yes", "0", "false", "no", ""):
            raise ConfigError(f"{PREFIX}{name.upper()} must be true or false, found {text!r}")
        return text.lower() in ("1", "true", "yes")
    try:
        return type(default)(text)
    except ValueError:
        remedy = (
            "; Kubernetes sets it for a service of this name, unless the pod has enableServiceLinks: false"
        )
        remedy = remedy if "://" in text else ""
        raise ConfigError(f"{PREFIX}{name.upper()} must be a number, found {text!r}{remedy}") from None
