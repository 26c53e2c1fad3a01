"""Progress of a long command: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, final

from counterpoint.cli.console import is_quiet, note
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.data import Collection
    from counterpoint.types import Document

__all__ = ["StageLines", "counting", "loading", "progress", "reading", "stage_lines"]

EVERY = 10.0  # seconds between lines
FINISHING = "finishing"  # everything was counted, and the work goes on: an index is written, for example
TICK = 1.0  # seconds between refreshes of a bar that does not move, so that its clock does


@contextmanager
def progress(
    label: str, unit: str, total: int | None = None, begun: int = 0
) -> Iterator[Callable[[int], None]]:
    """Show the number done, the rate and the time left; yield a function that takes the number done.

    Args:
        label: what is being done ("indexing").
        unit: what is counted ("documents").
        total: number of units, if known.
        begun: number that an earlier run did; smaller numbers are not shown.
    """
    if is_quiet():
        yield lambda done: None
    elif sys.stderr.isatty():
        with _bar(label, unit, total, begun) as update:
            yield update
    else:
        with _lines(label, unit, total, begun) as update:
            yield update


@contextmanager
def counting(label: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show `progress`; yield a function that takes the number done since its last call."""
    with progress(label, unit, total) as update:
        done = 0

        def more(count: int) -> None:
            nonlocal done
            done += count
            update(done)

        yield more


@contextmanager
def reading(collection: Collection, label: str = "reading") -> Iterator[Iterator[Document]]:
    """Yield the documents of a collection, and show `progress` while they are read."""
    with progress(label, "documents", collection.size) as update:

        def watched() -> Iterator[Document]:
            for number, document in enumerate(collection.documents(), 1):
                yield document
                update(number)

        yield watched()


@contextmanager
def loading(name: object) -> Iterator[None]:
    """Print a note on a terminal while a model is loaded; nothing without a model."""
    if name is not None and name != "none" and sys.stderr.isatty():
        note(f"loading {name}…")
    yield


@contextmanager
def _bar(label: str, unit: str, total: int | None, begun: int) -> Iterator[Callable[[int], None]]:
    from tqdm import tqdm

    width = _width()
    with (
        tqdm(
            total=total,
            initial=begun,
            desc=escaped(label),
            unit=f" {unit}",
            smoothing=0.1,
            ncols=width,
            nrows=None if width is None else 24,
            dynamic_ncols=width is None,
        ) as bar,
        _every(TICK, bar.refresh),
    ):

        def update(done: int) -> None:
            if done == total:
                bar.set_postfix_str(FINISHING, refresh=False)
            bar.update(max(done, begun) - bar.n)

        yield update
        bar.set_postfix_str("", refresh=False)


def _width() -> int | None:
    """None if the terminal reports its width; some report 0, for which tqdm shows nothing."""
    try:
        return None if os.get_terminal_size(sys.stderr.fileno()).columns else 80
    except (OSError, ValueError):
        return 80


@contextmanager
def _lines(label: str, unit: str, total: int | None, begun: int) -> Iterator[Callable[[int], None]]:
    started, done = time.monotonic(), begun

    def say() -> None:
        seconds = time.monotonic() - started
        note(line_of(f"{label}: ", unit, (done, total), seconds, (done - begun) / seconds))

    def update(now: int) -> None:
        nonlocal done
        done = max(now, begun)

    with _every(EVERY, say):
        yield update


@final
class StageLines:
    """Lines about a stage of training. The rate is counted from the first step that is finished here.

    Work before the first step, such as mining, would otherwise make the steps seem slow.
    """

    def __init__(self, label: str, total: int, begun: int):
        self.label, self.total, self.done, self.doing = label, total, begun, ""
        self.started = time.monotonic()
        self.first: tuple[float, int] | None = None

    def step(self, done: int) -> None:
        """`done` steps are finished."""
        self.done, self.doing = done, ""
        if self.first is None:
            self.first = time.monotonic(), done

    def say(self) -> None:
        """Print a line."""
        now = time.monotonic()
        since, begun = self.first or (now, self.done)
        rate = (self.done - begun) / (now - since) if now > since else 0.0
        counts = self.done, self.total
        note(line_of(f"{self.label}: ", "steps", counts, now - self.started, rate, self.doing))


@contextmanager
def stage_lines(label: str, total: int, begun: int) -> Iterator[StageLines]:
    """Print a line about a stage every ten seconds."""
    lines = StageLines(label, total, begun)
    with _every(EVERY, lines.say):
        yield lines


def line_of(
    label: str, unit: str, counts: tuple[int, int | None], seconds: float, rate: float, doing: str = ""
) -> str:
    """Log line with the number done, the total, what else is done, the rate, and the time left or spent.

    >>> line_of("indexing: ", "documents", (1200, 4800), 60, 20)
    'indexing: 1,200 of 4,800 documents (25 %), 20 a second, 03:00 left'
    >>> line_of("indexing: ", "documents", (4800, 4800), 250, 19)
    'indexing: 4,800 of 4,800 documents (100 %), finishing, after 04:10'
    """
    from tqdm import tqdm

    done, total = counts
    line = (
        f"{label}{done:,} of {total:,} {unit} ({100 * done // total} %)"
        if total
        else f"{label}{done:,} {unit}"
    )
    if doing := doing or (FINISHING if done == total else ""):
        line += f", {doing}"
    if rate <= 0 or done == total:
        return f"{line}, after {tqdm.format_interval(seconds)}"
    line += f", {rate:,.0f} a second" if rate >= 10 else f", {rate:.2g} a second"
    return f"{line}, {tqdm.format_interval((total - done) / rate)} left" if total else line


@contextmanager
def _every(seconds: float, call: Callable[[], object]) -> Iterator[None]:
    """Call a function at intervals while the block runs, which may take long between two steps."""
    ended = Event()

    def again() -> None:
        while not ended.wait(seconds):
            call()

    thread = Thread(target=again, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
