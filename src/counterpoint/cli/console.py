"""What every command shares: where output goes, progress, and how errors end."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TextIO

import typer

from counterpoint.escapes import escaped, escaped_lines, json_text

__all__ = ["Json", "emit", "note", "progress", "typed"]

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
    """Say something beside the result, on stderr. A line end within a line is escaped."""
    _write(sys.stderr, "\n".join(map(escaped, lines)))


def _write(stream: TextIO, text: str) -> None:
    """One write, so that a reader who goes away, as `head` does, ends no command as failed."""
    stream.write(text + "\n")
    stream.flush()


def typed() -> str:
    """The command as it was typed, for the record."""
    return shlex.join(["counterpoint", *sys.argv[1:]])


@contextmanager
def progress(label: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, nothing elsewhere; yields a function that takes how many are done."""
    from tqdm import tqdm

    with tqdm(
        total=total, desc=escaped(label), unit=f" {unit}", disable=not sys.stderr.isatty(), smoothing=0.1
    ) as bar:

        def update(done: int) -> None:
            bar.update(done - bar.n)

        yield update
