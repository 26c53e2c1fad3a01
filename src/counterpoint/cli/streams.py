"""The last defence of the terminal: whatever is written to it, no foreign control character gets through."""

from __future__ import annotations

import io
import sys
from typing import TextIO, final

from counterpoint.escapes import harmless

__all__ = ["guard_streams"]


@final
class Guarded(io.TextIOWrapper):
    """Standard output or error; results and messages are escaped before, this catches the rest.

    The rest are warnings, other libraries' messages and the tracebacks of `--debug`.
    """

    def write(self, text: str, /) -> int:
        """Write the text, its unsafe characters escaped."""
        super().write(harmless(text))
        return len(text)


def guard_streams() -> None:
    """Put a guard before both streams of this process; a stream that is not one of text files stays."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    # Characters that the stream's encoding lacks are escaped, too.
    return Guarded(
        stream.buffer,
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
