"""What every command shares: where output goes, progress, and how errors end."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

__all__ = ["Json", "emit", "note", "progress", "typed"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout; all else on stderr.")]


def emit(result: Mapping[str, Any], text: Callable[[], str], as_json: bool) -> None:
    """Print a command's result: one JSON object for machines, or `text()` for people."""
    typer.echo(json.dumps(result, ensure_ascii=False) if as_json else text())


def note(message: str) -> None:
    """Say something beside the result, on stderr."""
    typer.echo(message, err=True)


def typed() -> str:
    """The command as it was typed, for the record."""
    return shlex.join(["counterpoint", *sys.argv[1:]])


@contextmanager
def progress(label: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, nothing elsewhere; yields a function that takes how many are done."""
    from tqdm import tqdm

    with tqdm(
        total=total, desc=label, unit=f" {unit}", disable=not sys.stderr.isatty(), smoothing=0.1
    ) as bar:

        def update(done: int) -> None:
            bar.update(done - bar.n)

        yield update
