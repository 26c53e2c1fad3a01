"""Arrays on disk that grow row by row: `.npy` files whose header is filled in when they are closed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np

from counterpoint.errors import ArtifactError, ShapeError

__all__ = ["NpyWriter", "open_npy"]

HEADER_BYTES = 128
MAGIC = b"\x93NUMPY\x01\x00"


class NpyWriter:
    """Append rows to a `.npy` file without knowing beforehand how many will come.

    Until `close`, the file says that it has no rows, so a writer that was killed leaves nothing that reads
    as data.

    Args:
        path: the file to create.
        dtype: element type.
        row_shape: shape of one row; `()` for a vector of scalars.
    """

    def __init__(self, path: Path, dtype: np.dtype | type, row_shape: tuple[int, ...] = ()):
        self.path, self.dtype, self.row_shape, self.rows = path, np.dtype(dtype), row_shape, 0
        self._file = open(path, "wb")
        try:
            self._file.write(_header(self.dtype, (0, *row_shape)))
        except BaseException:
            self.abandon()
            raise

    def append(self, rows: np.ndarray) -> None:
        """Add rows; their dtype and shape must be the declared ones."""
        if rows.shape[1:] != self.row_shape or rows.dtype != self.dtype:
            raise ShapeError(
                f"{self.path.name}: rows of {rows.dtype}{rows.shape[1:]}, "
                f"declared {self.dtype}{self.row_shape}"
            )
        self._file.write(np.ascontiguousarray(rows).data)
        self.rows += len(rows)

    def close(self) -> None:
        """Write the true number of rows into the header."""
        if self._file.closed:
            return
        with self._file:
            self._file.seek(0)
            self._file.write(_header(self.dtype, (self.rows, *self.row_shape)))

    def abandon(self) -> None:
        """Close the file as it is: it says that it has no rows."""
        with suppress(OSError):  # what could not be written is of no use any more
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.close()
        else:
            self.abandon()


def open_npy(path: Path) -> np.ndarray:
    """Memory-map a `.npy` file for reading.

    Raises:
        ArtifactError: the file is absent, truncated or not an array.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise ArtifactError("this file of the index is missing", path=path) from error
    except (ValueError, OSError, EOFError) as error:
        raise ArtifactError(
            f"cannot be read as an array ({error}); the file is damaged", path=path
        ) from error
    return array


def _header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """A version 1.0 header of fixed size, so that it can be rewritten in place."""
    text = repr({"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    room = HEADER_BYTES - len(MAGIC) - 2
    body = text.encode("latin1").ljust(room - 1) + b"\n"
    if len(body) != room:
        raise ShapeError(f"array shape {shape} does not fit a header of {HEADER_BYTES} bytes")
    return MAGIC + room.to_bytes(2, "little") + body
