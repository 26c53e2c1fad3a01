"""Compressed files: which file names they have, and Zstandard as a stream of bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO, final

__all__ = ["ZstdBytes", "ending", "is_packed", "plain_stem"]

PACKED = (".gz", ".zst")
STEP = 1 << 10  # packed bytes per step: even hostile Zstandard data make at most 32 MiB of them
LARGEST_WINDOW = 1 << 27  # also the default limit of the command `zstd`


def is_packed(path: Path) -> bool:
    """Whether a file name says that the file is compressed."""
    return path.suffix.lower() in PACKED


def ending(path: Path) -> str:
    """The ending that tells the content, in lower case, without compression: `.txt` for `notes.TXT.gz`."""
    return Path(path.stem if is_packed(path) else path.name).suffix.lower()


def plain_stem(path: Path) -> str:
    """The name without its endings: `notes` for `notes.txt.gz`."""
    return Path(path.stem).stem if is_packed(path) else path.stem


@final
class ZstdBytes(io.RawIOBase):
    """The unpacked bytes of a Zstandard file, frame after frame.

    Raises:
        EOFError: on reading, if the data are damaged or truncated.
    """

    def __init__(self, raw: BinaryIO):
        import zstandard

        self._raw, self._damaged = raw, zstandard.ZstdError
        self._unpacker = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        self._frame, self._held, self._packed = None, memoryview(b""), b""

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer as far as unpacked bytes reach; 0 at the end."""
        while not self._held:
            self._packed = self._packed or self._raw.read(STEP)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("the last frame does not end")
                return 0
            self._frame = self._frame or self._unpacker.decompressobj()
            try:
                self._held = memoryview(self._frame.decompress(self._packed))
            except self._damaged as error:
                raise EOFError(str(error)) from error
            self._packed = self._frame.unused_data if self._frame.eof else b""
            self._frame = None if self._frame.eof else self._frame
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count
