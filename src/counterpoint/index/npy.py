"""Arrays on disk that grow row by row: `.npy` files whose header is completed when they are closed."""

from __future__ import annotations

import math
import mmap
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self, final

import numpy as np
import xxhash

from counterpoint.errors import ArtifactError, ShapeError

__all__ = ["NOTHING", "Kept", "NpyWriter", "Written", "as_array", "ends_type", "open_npy"]

NARROW = 2**32
HEADER_BYTES = 128
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    re.escape(MAGIC) + rb"(..)\{'descr': '(\|(?:b|i|u)1|[<>](?:i|u|f)[248])', 'fortran_order': False, "
    rb"'shape': \((\d{1,18},(?: \d{1,18},?)*)\),? ?\} *\n",
    re.DOTALL,
)


@final
@dataclass(frozen=True)
class Written:
    """How much of a growing file is synced: rows, and a 64-bit XXH3 of their bytes."""

    rows: int
    digest: int


Kept = Mapping[str, Written]
"""By file name, the valid part of the files that an interrupted build left."""
NOTHING: Kept = MappingProxyType({})


class NpyWriter:
    """Append rows to a `.npy` file without knowing their number beforehand.

    Until `close`, the header says that there are no rows, so the file of a killed writer reads as empty.

    Args:
        path: the file to create.
        dtype: element type.
        row_shape: shape of one row; `()` for a vector of scalars.
        kept: valid parts of existing files; if this file is among them, it is continued.

    Raises:
        ArtifactError: a file to continue is damaged.
    """

    def __init__(
        self, path: Path, dtype: np.dtype | type, row_shape: tuple[int, ...] = (), kept: Kept = NOTHING
    ):
        self.path, self.dtype, self.row_shape, self.rows = path, np.dtype(dtype), row_shape, 0
        self._row, self._hash = self.dtype.itemsize * math.prod(row_shape), xxhash.xxh3_64()
        before = kept.get(path.name)
        self._file = open(path, "wb" if before is None else "r+b")
        try:
            self._file.write(_header(self.dtype, (0, *row_shape)))
            if before is not None:
                self._take_up(before)
        except BaseException:
            self.abandon()
            raise

    def append(self, rows: np.ndarray) -> None:
        """Add rows of the declared dtype and shape."""
        if rows.shape[1:] != self.row_shape or rows.dtype != self.dtype:
            raise ShapeError(
                f"{self.path.name}: rows of {rows.dtype}{rows.shape[1:]}, "
                f"declared {self.dtype}{self.row_shape}"
            )
        content = np.ascontiguousarray(rows).data
        self._file.write(content)
        self._hash.update(content)
        self.rows += len(rows)

    def sync(self) -> Written:
        """Sync all rows to disk; return what a writer needs to continue from here."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return Written(self.rows, self._hash.intdigest())

    def read(self) -> np.ndarray:
        """All rows so far, memory-mapped."""
        self._file.flush()
        if not self.rows or not self._row:  # an empty range cannot be mapped
            return np.zeros((self.rows, *self.row_shape), self.dtype)
        return np.memmap(self.path, self.dtype, "r", HEADER_BYTES, (self.rows, *self.row_shape))

    def close(self) -> None:
        """Write the true number of rows into the header."""
        if self._file.closed:
            return
        with self._file:
            self._file.seek(0)
            self._file.write(_header(self.dtype, (self.rows, *self.row_shape)))

    def abandon(self) -> None:
        """Close the file as it is; its header says that it has no rows."""
        with suppress(OSError):  # unwritten rows are no longer needed
            self._file.close()

    def _take_up(self, before: Written) -> None:
        """Continue after the valid rows: check them, and cut off what follows."""
        left = before.rows * self._row
        self._file.seek(HEADER_BYTES)
        while left and (block := self._file.read(min(left, 2**20))):
            self._hash.update(block)
            left -= len(block)
        if left or self._hash.intdigest() != before.digest:
            raise ArtifactError(
                "this file of the unfinished build is damaged; build from the start without --resume",
                path=self.path,
            )
        end = HEADER_BYTES + before.rows * self._row
        self._file.seek(end)
        self._file.truncate(end)
        self.rows = before.rows

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
        with open(path, "rb") as file:
            return as_array(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), path)
    except FileNotFoundError as error:
        raise ArtifactError("this file of the index is missing", path=path) from error
    except (ValueError, OSError) as error:  # an empty file cannot be mapped
        raise ArtifactError(f"cannot be read as an array ({error})", path=path) from error


def as_array(content: bytes | mmap.mmap | memoryview, path: Path) -> np.ndarray:
    """The array in the bytes of a `.npy` file, not copied.

    numpy's own reader tries to repair headers that it cannot parse, and fails in many ways on damaged ones.
    `NpyWriter` and `numpy.save` write plain numbers in one form; anything else is refused.

    Raises:
        ArtifactError: it is not an array of numbers, or header and size disagree.
    """
    found = HEADER.match(content)
    if found is None or found.end() != 10 + int.from_bytes(found[1], "little"):
        raise ArtifactError("not an array of numbers (.npy); the file is damaged", path=path)
    dtype = np.dtype(found[2].decode())
    shape = tuple(int(number) for number in re.findall(rb"\d+", found[3]))
    promised, size = found.end() + dtype.itemsize * math.prod(shape), memoryview(content).nbytes
    if promised != size:
        told = f"its header promises {promised:,} bytes, the file has {size:,}; it is damaged"
        raise ArtifactError(told, path=path)
    return np.ndarray(shape, dtype, buffer=content, offset=found.end())


def ends_type(largest: int) -> type[np.unsignedinteger]:
    """The type of numbers up to `largest`, such as places in a file: four bytes if they fit."""
    return np.uint32 if largest < NARROW else np.uint64


def _header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """A version 1.0 header of fixed size, so that it can be rewritten in place."""
    text = repr({"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    room = HEADER_BYTES - len(MAGIC) - 2
    body = text.encode("latin1").ljust(room - 1) + b"\n"
    if len(body) != room:
        raise ShapeError(f"array shape {shape} does not fit a header of {HEADER_BYTES} bytes")
    return MAGIC + room.to_bytes(2, "little") + body
