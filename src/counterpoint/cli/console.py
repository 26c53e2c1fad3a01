"""Output that all commands share: results on stdout, notes and errors on stderr."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, TextIO

import typer

from counterpoint.escapes import escaped, escaped_lines, json_text

__all__ = ["Json", "complain", "emit", "is_quiet", "note", "quietly", "typed", "warned"]

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout")]


def emit(result: Mapping[str, Any], text: Callable[[], str], as_json: bool) -> None:
    r"""Print a command's result: one JSON object for machines, or `text()` for people.

    Unsafe characters are escaped here, except line ends. The caller must apply `escaped` to names and texts
    within a line of `text()`. Otherwise a title with a line end looks like a line of our own.
    """
    if as_json:
        utf = (sys.stdout.encoding or "utf").lower().startswith("utf")
        _write(sys.stdout, json_text(result, ascii_only=not utf))
    else:
        _write(sys.stdout, escaped_lines(text()))


def note(*lines: str) -> None:
    """Print lines, if there are any, on stderr unless --quiet. A line end within a line is escaped."""
    if lines and not is_quiet():
        complain(*lines)


@contextmanager
def warned() -> Iterator[None]:
    """Print warnings of this block as notes."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", UserWarning)
        yield
    note(*(str(one.message) for one in raised))


def complain(*lines: str) -> None:
    """Print lines on stderr, even with --quiet."""
    _write(sys.stderr, "\n".join(map(escaped, lines)))


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """Print only results and errors in this block, if `quiet`."""
    before = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(before)


def is_quiet() -> bool:
    """Whether --quiet was typed."""
    return _QUIET.get()


def _write(stream: TextIO, text: str) -> None:
    """Write at once, so that a reader that closes the pipe, as `head` does, fails no command."""
    stream.write(text + "\n")
    stream.flush()


def typed() -> str:
    """The command line of this process, for provenance."""
    return shlex.join(["counterpoint", *sys.argv[1:]])
