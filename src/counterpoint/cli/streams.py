"""The last defence of the terminal: whatever is written to it, no foreign control character gets through."""

from __future__ import annotations

import io
import sys
import traceback
from typing import TextIO, final

from counterpoint.escapes import escaped, escaped_lines, harmless

__all__ = ["guard_streams", "show_traceback"]


@final
class Guarded(io.TextIOWrapper):
    """Standard output or error; results and messages come escaped, this catches other libraries' words."""

    def __init__(self, stream: io.TextIOWrapper):
        self.stream = stream  # kept: when it goes, it closes what is written to
        # Characters that the stream's encoding lacks are escaped, too.
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors="backslashreplace",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )

    def write(self, text: str, /) -> int:
        """Write the text, its unsafe characters escaped."""
        super().write(harmless(text))
        return len(text)


def guard_streams() -> None:
    """Put a guard before both streams of this process."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: TextIO) -> TextIO:
    if isinstance(stream, Guarded) or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    return Guarded(stream)


def show_traceback(error: BaseException | None) -> None:
    """What the interpreter prints of an error, its message escaped."""
    text = "".join(traceback.format_exception(error))
    while error is not None:  # a message may hold line ends, which the traceback has, too
        message = str(error)
        text = text.replace(message, shown) if (shown := escaped(message)) != message else text
        error = error.__cause__ or error.__context__
    print(escaped_lines(text), end="", file=sys.stderr, flush=True)
