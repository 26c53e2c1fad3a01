"""What a disk or a network raises while data are read, as an error that a user can act on."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException

from counterpoint.errors import CounterpointError, DataError

__all__ = ["UNREADABLE", "reading"]

UNREADABLE: tuple[type[Exception], ...] = (
    OSError,  # of a disk, and of a network: all errors of `requests` are of this kind
    EOFError,
    HTTPException,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
REASON = 300  # characters of a reason that are shown


@contextmanager
def reading(
    origin: str, remedy: str = "check that it is there", failures: tuple[type[Exception], ...] = UNREADABLE
) -> Iterator[None]:
    """Turn what a disk or a network raises while data are read into an error that a user can act on.

    Args:
        origin: what is read; of an error that names a file, that file.
        remedy: what to do about it.
        failures: what is raised where something cannot be read.

    Raises:
        DataError: in place of one of them.
    """
    try:
        yield
    except CounterpointError:
        raise
    except failures as error:
        said = " ".join(str(getattr(error, "strerror", None) or error).split())
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        shown = reason if len(reason) <= REASON else f"{reason[:REASON]} …"
        path = getattr(error, "filename", None)
        what = origin if path is None or origin == str(path) else f"{origin}: {path}"
        raise DataError(f"cannot be read ({shown}); {remedy}", path=what) from error
