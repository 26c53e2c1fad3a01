"""Write lines atomically, packed if the file name ends in `.gz`."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from counterpoint.errors import ConfigError, DataError
from counterpoint.files import write_atomically

__all__ = ["check_layout", "one_line", "write_lines"]


def check_layout(layout: object, known: Any) -> None:
    """Raise ConfigError unless a layout is one of the names of a `Literal`."""
    if layout not in get_args(known):
        raise ConfigError(f"layout: expected one of {', '.join(get_args(known))}, found {layout!r}")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    r"""Write each line and a `\n`; the same lines always give the same bytes.

    Raises:
        ArtifactError: the file could not be written; an existing file is unchanged.
        DataError: raised by `lines`, or a text cannot be stored as UTF-8.
    """

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                    _write(io.BufferedWriter(packed, 1 << 18), lines)  # pyright: ignore[reportArgumentType]
            else:
                _write(raw, lines)

    try:
        write_atomically(path, write)
    except UnicodeEncodeError as error:
        raise DataError(f"cannot be written as UTF-8: {error}; remove lone surrogates", path=path) from error


def _write(file: io.BufferedWriter, lines: Iterable[str]) -> None:
    for line in lines:
        file.write(line.encode("utf-8") + b"\n")
    file.flush()


def one_line(text: str, what: str) -> str:
    """Return the text if it is neither blank nor contains tabs or line ends.

    Raises:
        DataError: it is blank or contains them.
    """
    if not text.strip() or any(mark in text for mark in "\t\n\r"):
        raise DataError(f"{what} must not be blank or contain tabs or line ends here, found {text!r}")
    return text
