"""Run commands one after the other in a process of their own, on a terminal that keeps what is written."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SCRIPT = """
import json, os, sys
from counterpoint.cli.main import main

for number, words in enumerate(json.load(open(sys.argv[1]))):
    sys.argv = ["counterpoint", *words]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    os.write(1, f"{os.environ['MARK']} {number} {code}\\n".encode())
"""
MARK = "@@@ exit code"


class Shown(NamedTuple):
    """What a command ended with, and what the terminal got."""

    code: int
    text: str


def on_a_terminal(commands, folder, *, term="dumb"):
    """Run commands in `folder`; for each its exit code and every character that reached the terminal."""
    import pty

    listed = folder / "commands.json"
    listed.write_text(json.dumps([list(map(str, words)) for words in commands]))
    environment = dict(os.environ, TERM=term, COLUMNS="4000", MARK=MARK)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # recipes import from tests
    environment |= {"NO_COLOR": "1"} if term == "dumb" else {}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, listed], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    written = b""
    with suppress(OSError):  # EIO: the other end is closed
        while block := os.read(ours, 1 << 16):
            written += block
    os.close(ours)
    assert process.wait() == 0, written.decode("utf-8", "replace")
    return list(_by_command(written.decode("utf-8"), len(commands)))


def _by_command(text, count):
    for number in range(count):
        shown, found, text = text.partition(f"{MARK} {number} ")
        assert found, f"command {number} did not end: {shown}"
        code, _, text = text.partition("\r\n")
        yield Shown(int(code), shown)


def write(path, text):
    """Write a text file, with its folder."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8", newline="")
    return path
