"""Find the files that an export refers to, and check that they are unchanged."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import xxhash
from jaxtyping import Float

from counterpoint.errors import ArtifactError

__all__ = ["FileRef", "Mapped"]

ANOTHER = "is not the file with which the queries' export was made"


@final
@dataclass(frozen=True)
class FileRef:
    """A file that an export refers to.

    Attributes:
        base: what `path` is relative to: "package:NAME", "model" (the folder of the index's model) or "index"
            (the folder that the export is in).
        path: with slashes.
        bytes: its size.
        xxh3: hash of the whole file, XXH3 with 128 bits.
    """

    base: str
    path: str
    bytes: int
    xxh3: str

    @staticmethod
    def of(base: str, path: str, file: Path) -> FileRef:
        """Record size and hash of a file."""
        mapped = Mapped(file)
        return FileRef(base, path, len(mapped.raw), mapped.hash())

    def opened(self, folder_of: Callable[[str], Path | None]) -> Mapped:
        """Open the file and check that it is unchanged; `folder_of` maps a base to its folder.

        Raises:
            ArtifactError: it is missing or has changed.
        """
        if (folder := folder_of(self.base)) is None:
            raise ArtifactError(f"{self.base}: not found, but queries' weights are in its file {self.path}")
        mapped = Mapped(folder / self.path)
        if len(mapped.raw) != self.bytes or mapped.hash() != self.xxh3:
            raise ArtifactError(ANOTHER, path=folder / self.path)
        return mapped


@final
class Mapped:
    """A file mapped into memory; unread parts take no memory.

    Raises:
        ArtifactError: it cannot be read.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            with path.open("rb") as file:
                self.raw = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            raise ArtifactError(f"cannot be read: {error}", path=path) from error

    def hash(self) -> str:
        """XXH3 of the whole file."""
        return xxhash.xxh3_128_hexdigest(self.raw)

    def floats(self, offset: int, shape: tuple[int, ...]) -> Float[np.ndarray, ...]:
        """The float32 numbers at an offset, without a copy."""
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.raw, np.float32, count, offset).reshape(shape)
