"""Commands on hostile input: they end with 0 or 2, soon, in bounded memory, and leave nothing half done."""

import os
import resource
import signal
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest.mock import patch

from typer.main import get_command

from counterpoint.cli.main import app, main

SECONDS = 20  # a generous bound for a busy machine; no case takes more than about two
MEMORY = 2 << 30  # bytes beyond what the process has: what a declared size of 1e12 asks for is far more


@contextmanager
def bounded(seconds=SECONDS, memory=MEMORY):
    """Fail what takes longer than so many seconds, and refuse it more than so much memory."""

    def out_of_time(*_):
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, out_of_time)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    held = _held()
    if held is not None:
        resource.setrlimit(resource.RLIMIT_AS, (held + memory, limits[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGALRM, before)


def _held():
    """Bytes of address space that this process has; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


@cache
def commands():
    """All commands, made once: that takes typer three times as long as most of these cases do."""
    return get_command(app)


def survives(capsys, *arguments, outputs=(), names=()):
    """Run a command: exit code 0 or 2, and where it is 2 a message and no output.

    Args:
        capsys: pytest's.
        arguments: the command line.
        outputs: what the command would write; not there where it fails.
        names: words that the message of a failure must have, a file's name above all.

    Returns:
        Exit code, stdout, stderr.
    """
    started = time.monotonic()
    with bounded(), patch("counterpoint.cli.main.app", commands()):
        code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    said = f"{' '.join(map(str, arguments))}\nexit code {code}\n{err}"
    assert code in (0, 2), said
    assert "This is a bug" not in err and "Traceback" not in err, said
    assert time.monotonic() - started < SECONDS, said
    if code == 2:
        assert err.strip(), "a failure without a message"
        for word in names:
            assert str(word) in err, said
        for output in outputs:
            assert not Path(output).exists(), f"{output} was left behind\n{said}"
    return code, out, err
