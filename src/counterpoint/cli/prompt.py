"""`counterpoint search INDEX` on a terminal: a prompt with a loaded model, settings and a history."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import get_args

from counterpoint.cli.asking import Asking, Explained, show
from counterpoint.cli.complete import workflows
from counterpoint.cli.console import complain, note
from counterpoint.errors import ConfigError, CounterpointError

__all__ = ["history_file", "prompt"]

HELP = """\
  a question    search for it
  :k 5          show five documents
  :explain      show which words matched; :explain full shows everything, :explain no nothing
  :w dense      choose the workflow: hybrid, lexical, dense, words, dense-words, words-dense
  :help         show this list
  :quit         quit, as Ctrl-D does"""
LINES = 1000  # of the history


def prompt(asking: Asking) -> None:
    """Answer questions until Ctrl-D or `:quit`; print errors and go on.

    Raises:
        CounterpointError: the index does not support the options of the command line.
    """
    asking.ready()
    unit = "passages" if asking.opened.index.parents else "documents"
    note(f"{len(asking.opened):,} {unit}. Ask, or type :help; Ctrl-D ends.")
    with _history():
        while (line := _line()) is not None:
            try:
                if line in (":q", ":quit", ":exit"):
                    return
                asking = _obey(line, asking)
            except CounterpointError as error:
                complain(f"error: {error}")
            except KeyboardInterrupt:
                complain("interrupted")


def _obey(line: str, asking: Asking) -> Asking:
    if not line.startswith(":"):
        if line:
            show(asking.answer(line, explain=True)[0], asking.explained)
        return asking
    name, _, rest = line[1:].partition(" ")
    if name not in COMMANDS:
        raise ConfigError(f"there is no :{name}; :help lists what there is")
    changed = COMMANDS[name](asking, rest.strip())
    changed.ready()  # raises for a workflow that this index lacks, so that it is not kept
    return changed


def _k(asking: Asking, word: str) -> Asking:
    if not (word.isascii() and word.isdecimal() and 0 < int(word[:9]) == int(word)):
        raise ConfigError(f":k takes a whole number from 1, as in :k 5; found {word!r}")
    return _told(replace(asking, options=replace(asking.options, k=int(word))))


def _explain(asking: Asking, word: str) -> Asking:
    chosen: Explained | None = next((name for name in get_args(Explained) if name == (word or "words")), None)
    if chosen is None:
        raise ConfigError(f":explain takes nothing, full or no; found {word!r}")
    return _told(replace(asking, explained=chosen))


def _workflow(asking: Asking, word: str) -> Asking:
    if word not in (known := workflows("")):
        raise ConfigError(f":w takes {', '.join(known[:-1])} or {known[-1]}; found {word!r}")
    if asking.options.feedback not in (None, "0") and word != "hybrid":
        raise ConfigError("--feedback works with the hybrid only, and this prompt was opened with it")
    return _told(replace(asking, options=replace(asking.options, workflow=word)))


def _help(asking: Asking, word: str) -> Asking:
    complain(*HELP.splitlines())
    return asking


def _told(asking: Asking) -> Asking:
    options = asking.options
    explained = {"no": "not explained", "words": "explained", "full": "explained in full"}[asking.explained]
    note(f"{options.workflow}, {options.k} document{'s' * (options.k != 1)}, {explained}")
    return asking


COMMANDS: Mapping[str, Callable[[Asking, str], Asking]] = MappingProxyType(
    {"k": _k, "explain": _explain, "w": _workflow, "help": _help}
)


def _line() -> str | None:
    """Read a line; empty after Ctrl-C, None at the end of input."""
    try:
        return input("> ").strip()
    except EOFError:
        print()
        return None
    except KeyboardInterrupt:
        print()
        return ""
    except UnicodeDecodeError:
        complain("error: what was typed is not UTF-8")
        return ""


def history_file() -> Path:
    """Path of the prompt's history, in the system's folder for application state."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "counterpoint" / "history"


@contextmanager
def _history() -> Iterator[None]:
    """Enable line editing and the history, if readline is available and the file can be written."""
    try:
        import readline
    except ImportError:  # Windows, whose console edits lines itself
        yield
        return
    path = history_file()
    readline.clear_history()
    readline.set_history_length(LINES)
    with suppress(OSError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))  # readable by the user only
            readline.write_history_file(path)
