"""Guard the terminal: no control character of other people's texts reaches it."""

from __future__ import annotations

import io
import sys
import traceback
from typing import TextIO, final

from counterpoint.escapes import escaped, escaped_lines, harmless

__all__ = ["guard_streams", "show_traceback"]


@final
class Guarded(io.TextIOWrapper):
    """Standard output or error that escapes other libraries' output; ours is escaped already."""

    def __init__(self, stream: io.TextIOWrapper):
        self.stream = stream  # kept alive: when it is collected, it closes the buffer
        # Characters that the stream's encoding lacks are escaped, too.
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors="backslashreplace",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )

    def write(self, text: str, /) -> int:
        """Write the text with unsafe characters escaped."""
        super().write(harmless(text))
        return len(text)


def guard_streams() -> None:
    """Guard the standard output and error of this process."""
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)


def _guarded(stream: TextIO) -> TextIO:
    if isinstance(stream, Guarded) or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    return Guarded(stream)


def show_traceback(error: BaseException | None) -> None:
    """Print a traceback as the interpreter does, with the message escaped."""
    text = "".join(traceback.format_exception(error))
    while error is not None:  # escape line ends of messages, but not of the traceback
        message = str(error)
        text = text.replace(message, shown) if (shown := escaped(message)) != message else text
        error = error.__cause__ or error.__context__
    print(escaped_lines(text), end="", file=sys.stderr, flush=True)
