"""What every command shares: where its output goes."""

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

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout; all else on stderr.")]


def emit(result: Mapping[str, Any], text: Callable[[], str], as_json: bool) -> None:
    r"""Print a command's result: one JSON object for machines, or `text()` for people.

    Unsafe characters are escaped here, line ends excepted: names and texts within a line of `text()` must
    be `escaped` where the line is made, or a title with a line end would look like a line of ours.
    """
    if as_json:
        utf = (sys.stdout.encoding or "utf").lower().startswith("utf")
        _write(sys.stdout, json_text(result, ascii_only=not utf))
    else:
        _write(sys.stdout, escaped_lines(text()))


def note(*lines: str) -> None:
    """Say something beside the result, on stderr, unless --quiet. A line end within a line is escaped."""
    if not is_quiet():
        complain(*lines)


@contextmanager
def warned() -> Iterator[None]:
    """What is warned of in this block is a note."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", UserWarning)
        yield
    note(*(str(one.message) for one in raised)) if raised else None


def complain(*lines: str) -> None:
    """Say what went wrong, on stderr."""
    _write(sys.stderr, "\n".join(map(escaped, lines)))


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """In this block nothing is said but results and errors, if `quiet`."""
    before = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(before)


def is_quiet() -> bool:
    """Whether --quiet was typed."""
    return _QUIET.get()


def _write(stream: TextIO, text: str) -> None:
    """One write, so that a reader who goes away, as `head` does, ends no command as failed."""
    stream.write(text + "\n")
    stream.flush()


def typed() -> str:
    """The command as it was typed, for the record."""
    return shlex.join(["counterpoint", *sys.argv[1:]])
