"""Turn errors of a disk or a network into errors that a user can act on."""

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

# `OSError`: of a disk or a network, including all errors of `requests`.
DAMAGED = (EOFError, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, zlib.error)
UNREADABLE: tuple[type[Exception], ...] = (OSError, HTTPException, *DAMAGED)
REASON = 300  # maximum length of a shown reason, in characters


@contextmanager
def reading(
    origin: str, remedy: str = "check that it is there", failures: tuple[type[Exception], ...] = UNREADABLE
) -> Iterator[None]:
    """Turn errors of a disk or a network into errors that a user can act on.

    They name the origin, any file that the original error names, and the remedy.

    Raises:
        DataError: instead of one of `failures`.
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
