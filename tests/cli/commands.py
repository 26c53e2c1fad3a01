"""Calling commands as processes, and what a user's mistake looks like."""

import subprocess
import sys


def in_a_process(*arguments, flags=(), **options):
    """Run a command as its own process."""
    command = [sys.executable, *flags, "-m", "counterpoint", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def fails(result, *needles):
    """A user's mistake: exit code 2, a message with these words, no traceback, nothing on stdout."""
    code, out, err = (
        result if isinstance(result, tuple) else (result.returncode, result.stdout, result.stderr)
    )
    assert code == 2, err
    assert "Traceback" not in err and out == ""
    for needle in needles:
        assert needle in err
    return True
