"""Index files that are compared with their checksums before they are used, block by block.

    blocks.npy   in each folder: a 64-bit XXH3 of every 64 KiB of its files, in the order of their names

A query touches a few megabytes of an index that may have gigabytes. So a block is checked when something in
it is first read. `blocks.npy` itself is checked against the manifest when the index opens. An index of an
earlier version has no such file. It is checked by the manifest's SHA-256 of whole files, also at first use.
"""

from __future__ import annotations

import copy
import hashlib
import mmap
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
import xxhash
from jaxtyping import Int, UInt64

from counterpoint.errors import ArtifactError
from counterpoint.index.manifest import FileEntry
from counterpoint.index.npy import as_array

__all__ = ["BLOCKS", "DAMAGED", "REMEDY", "CheckedArray", "CheckedFile", "CheckedFolder", "write_blocks"]

BLOCKS = "blocks.npy"
BLOCK = 2**16  # bytes; about what the kernel reads ahead for one page anyway
REMEDY = "try `counterpoint verify INDEX --repair`, or copy the index again or build it again"
DAMAGED = f"does not match its checksum; the file is damaged, {REMEDY}"
T = TypeVar("T")
MISSING = f"this file of the index is missing; {REMEDY}"


def write_blocks(folder: Path, paths: Iterable[Path]) -> None:
    """Write the checksums of some files of a folder. The files must not change afterwards."""
    sums = []
    for path in sorted(paths, key=lambda path: path.name):
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                sums.append(xxhash.xxh3_64_intdigest(block))
    np.save(folder / BLOCKS, np.array(sums, np.uint64))


@final
class CheckedFile:
    """One memory-mapped file. It stays readable after its name is deleted.

    Args:
        path: the file.
        entry: its size and checksum; None for a file just written, which needs no check.
        sums: of its blocks; None to check the whole file by `entry`.

    Attributes:
        unchecked: the bytes. Only those that `check` has passed may be trusted.
        intact: whether every byte has been checked.

    Raises:
        ArtifactError: the file is missing or has another size.
    """

    def __init__(
        self, path: Path, entry: FileEntry | None = None, sums: UInt64[np.ndarray, " b"] | None = None
    ):
        self.path, self._entry, self._sums = path, entry, sums
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if entry is not None and size != entry.bytes:
                    told = f"{size:,} bytes, but the manifest says {entry.bytes:,}; {REMEDY}"
                    raise ArtifactError(told, path=path)
                self.unchecked = memoryview(
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
                )
        except FileNotFoundError as error:
            raise ArtifactError(MISSING, path=path) from error
        except OSError as error:
            raise ArtifactError(f"cannot be read: {error.strerror}", path=path) from error
        self._checked = np.zeros(-(-size // BLOCK), bool)
        self.intact = entry is None
        if sums is not None and size:
            self.check(0, 1)  # so that a damaged header is found when the index opens

    def whole(self) -> memoryview:
        """All bytes, checked.

        Raises:
            ArtifactError: the file is damaged.
        """
        self.check(0, len(self.unchecked))
        return self.unchecked

    def check(self, start: int, end: int) -> None:
        """Check the bytes from `start` to `end`.

        Raises:
            ArtifactError: the file is damaged.
        """
        if self.intact or start >= end:
            return
        first, last = start // BLOCK, (end - 1) // BLOCK
        if first < last or not self._checked[first]:
            self._check_blocks(np.arange(first, last + 1))

    def check_runs(self, starts: Int[np.ndarray, " k"], ends: Int[np.ndarray, " k"]) -> None:
        """Check several byte ranges; the first runs from `starts[0]` to `ends[0]`.

        Raises:
            ArtifactError: the file is damaged.
        """
        filled = starts < ends
        if self.intact or not filled.any():
            return
        first, last = starts[filled] // BLOCK, (ends[filled] - 1) // BLOCK
        across = range(int((last - first).max()) + 1)
        self._check_blocks(np.concatenate([np.minimum(first + more, last) for more in across]))

    def _check_blocks(self, blocks: Int[np.ndarray, " k"]) -> None:
        new = sorted(set(blocks[~self._checked[blocks]].tolist()))  # np.unique imports numpy.ma
        if not new:
            return
        if self._sums is not None:
            for block, right in zip(new, self._sums[new].tolist(), strict=True):
                piece = self.unchecked[block * BLOCK : (block + 1) * BLOCK]
                if xxhash.xxh3_64_intdigest(piece) != right:
                    raise ArtifactError(DAMAGED, path=self.path)
            self._checked[new] = True
        elif self._entry is not None:
            if hashlib.sha256(self.unchecked).hexdigest() != self._entry.sha256:
                raise ArtifactError(DAMAGED, path=self.path)
            self._checked[:] = True
        self.intact = bool(self._checked.all())


@final
class CheckedArray:
    """A `.npy` file, memory-mapped; rows are checked when they are taken.

    Raises:
        ArtifactError: the file does not hold an array.
    """

    def __init__(self, file: CheckedFile):
        self._file = file
        self._array = as_array(file.unchecked, file.path)
        self._row = self._array.itemsize * int(np.prod(self._array.shape[1:]))
        self._start = len(file.unchecked) - self._array.nbytes

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, rows: slice | Int[np.ndarray, " k"]) -> np.ndarray:
        if isinstance(rows, slice):
            start, end, _ = rows.indices(len(self._array))
            self._file.check(self._start + start * self._row, self._start + end * self._row)
        else:
            some = np.asarray(rows, np.int64)
            self._check(some, some + 1)
        return self._array[rows]

    def checked(self, firsts: Int[np.ndarray, " k"], ends: Int[np.ndarray, " k"]) -> np.ndarray:
        """Every row, not copied; only those from each of `firsts` to its end have been checked."""
        self._check(firsts, ends)
        return self._array

    def _check(self, firsts: Int[np.ndarray, " k"], ends: Int[np.ndarray, " k"]) -> None:
        if not self.intact:
            self._file.check_runs(self._start + firsts * self._row, self._start + ends * self._row)

    @property
    def intact(self) -> bool:
        """Whether every row has been checked."""
        return self._file.intact

    def all(self) -> np.ndarray:
        """Every row, not copied."""
        self._file.whole()
        return self._array


@final
class CheckedFolder:
    """Files of an index, all opened at once, so that a rebuild can delete them.

    Args:
        folder: with the files.
        listed: their names with size and checksum; None for files that were just written.
        but: names of listed files that are not opened; asking for one is an error.
        trusted: names of listed files that are read without any check.

    Raises:
        ArtifactError: a file is missing or has another size, or `blocks.npy` is damaged.
    """

    def __init__(
        self,
        folder: Path,
        listed: Mapping[str, FileEntry] | None = None,
        *,
        but: Collection[str] = (),
        trusted: Collection[str] = (),
    ):
        self.folder, self._listed = folder, listed
        self._files: dict[str, CheckedFile] = {}
        self._made: dict[Hashable, Any] = {}
        entries = dict(sorted((listed or {}).items()))
        sums = _sums(folder, entries)
        for name, entry in entries.items():
            if name in but:
                continue
            checks = (None, None) if name in trusted else (entry, sums.get(name))
            self._files[name] = CheckedFile(folder / name, *checks)

    def __contains__(self, name: str) -> bool:
        return name in self._listed if self._listed is not None else (self.folder / name).exists()

    def file(self, name: str) -> CheckedFile:
        """A file by name.

        Raises:
            ArtifactError: there is no such file.
        """
        if name not in self._files:
            if self._listed is not None:
                raise ArtifactError(MISSING, path=self.folder / name)
            self._files[name] = CheckedFile(self.folder / name)
        return self._files[name]

    def array(self, name: str) -> CheckedArray:
        """An array file by name.

        Raises:
            ArtifactError: there is no such file, or it is not an array.
        """
        return CheckedArray(self.file(name))

    def once(self, key: Hashable, make: Callable[[CheckedFolder], T]) -> T:
        """The result of the first call of `make` with this key; later commits share it.

        `make` is given this folder without such results. So a result may keep it, and the files are closed
        when nobody uses the folder, without waiting for cycles to be collected.
        """
        if key not in self._made:
            bare = copy.copy(self)
            bare._made = {}
            self._made[key] = make(bare)
        return self._made[key]


def _sums(folder: Path, entries: dict[str, FileEntry]) -> dict[str, UInt64[np.ndarray, " b"]]:
    """The block checksums of every file, empty without `blocks.npy`; removes that file from `entries`."""
    own = entries.pop(BLOCKS, None)
    if own is None:
        return {}
    path = folder / BLOCKS
    sums = as_array(CheckedFile(path, own).whole(), path)
    ends = list(accumulate(-(-entry.bytes // BLOCK) for entry in entries.values()))
    if sums.dtype != np.uint64 or sums.shape != (ends[-1] if ends else 0,):
        raise ArtifactError("does not fit the files of its folder", path=path)
    starts = [0, *ends]
    return {name: sums[start:end] for name, start, end in zip(entries, starts, ends, strict=False)}
