"""All errors that Counterpoint raises on purpose.

    CounterpointError
    ├── ConfigError(ValueError)        an invalid setting, recipe or command line
    ├── DataError(ValueError)          invalid input data, with its file and line
    ├── ShapeError(ValueError)         arrays whose shapes do not match
    ├── NotFittedError(RuntimeError)   a part used before `setup()` or `fit()`
    ├── ArtifactError(RuntimeError)    a saved artefact: version, checksum, missing or unused weights
    └── MissingExtraError(ImportError) an optional dependency, with the command that installs it

A message says what is wrong, where, what was found, and what to do. On the command line, these errors end
with exit code 2 and no traceback. Any other error is a bug of ours and ends with exit code 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

__all__ = [
    "ArtifactError",
    "ConfigError",
    "CounterpointError",
    "DataError",
    "MissingExtraError",
    "NotFittedError",
    "ShapeError",
    "without_paths",
]


class CounterpointError(Exception):
    """Base of every error in this package."""


class ConfigError(CounterpointError, ValueError):
    """An invalid setting; `faults` lists all of them, not only the first."""

    def __init__(self, *faults: str):
        self.faults = faults
        super().__init__("\n".join(faults))


class DataError(CounterpointError, ValueError):
    """Invalid input data, with its file and line if known."""

    def __init__(self, message: str, *, path: str | Path | None = None, line: int | None = None):
        self.path, self.line = path, line
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message)


class ShapeError(CounterpointError, ValueError):
    """Arrays whose shapes do not match."""


class NotFittedError(CounterpointError, RuntimeError):
    """A part that was used before `setup()` or `fit()`."""


class ArtifactError(CounterpointError, RuntimeError):
    """A saved artefact that cannot be read, written or trusted."""

    def __init__(self, message: str, *, path: str | Path | None = None):
        self.path = path
        super().__init__(message if path is None else f"{path}: {message}")


class MissingExtraError(CounterpointError, ImportError):
    """An optional dependency that is not installed."""

    def __init__(self, what: str, *, package: str, extra: str):
        self._made = partial(MissingExtraError, what, package=package, extra=extra)
        super().__init__(
            f"{what} needs the package {package!r}, which is not installed. Install it with: {_remedy(extra)}"
        )

    def __reduce__(self) -> tuple[Callable[[], MissingExtraError], tuple[()]]:
        """An error of another process is sent as what makes it."""
        return self._made, ()


def without_paths(error: CounterpointError) -> str:
    """What a client on another machine may be told of an error: no path of this machine."""
    if isinstance(error, ConfigError):
        return "; ".join(error.faults)
    if isinstance(error, DataError):
        text = str(error)
        return text if error.path is None else text.removeprefix(f"{error.path}:").lstrip()
    if isinstance(error, MissingExtraError):
        return "this server lacks an optional package for that"
    if isinstance(error, ArtifactError):
        return (
            "the index cannot be used at the moment: it is being written, is gone or is damaged; try again, "
            "or look at the server's log"
        )
    return str(error)


def _remedy(extra: str) -> str:
    """The command that installs an extra into this environment, from the origin of this package.

    The package is not on an index yet, so its name alone would find nothing.
    """
    import json  # imported here because every command imports this module
    import shlex
    import sys
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    command = f"{shlex.quote(sys.executable)} -m pip install"
    try:
        written = distribution("counterpoint-ir").read_text("direct_url.json")
        origin = json.loads(written or "{}")
    except (PackageNotFoundError, ValueError):
        origin = {}
    address = urlsplit(origin.get("url", ""))
    if address.scheme != "file":
        return f"{command} -e '.[{extra}]', in a clone of the repository"
    editable = " -e" if origin.get("dir_info", {}).get("editable") else ""
    return f"{command}{editable} {shlex.quote(f'{url2pathname(address.path)}[{extra}]')}"
