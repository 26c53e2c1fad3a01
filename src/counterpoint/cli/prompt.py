"""`counterpoint search INDEX` on a terminal: a prompt that keeps the model, its settings and a history."""

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
  :explain      say which words matched; :explain full says all, :explain no nothing
  :w dense      search another way: hybrid, lexical, dense, words, dense-words, words-dense
  :help         this list
  :quit         end, as Ctrl-D does"""
LINES = 1000  # of the history


def prompt(asking: Asking) -> None:
    """Answer questions until Ctrl-D or `:quit`; a mistake is told and the prompt comes again.

    Raises:
        CounterpointError: the index cannot be searched as was asked on the command line.
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
    """Answer, or change how the next questions are answered."""
    if not line.startswith(":"):
        if line:
            show(asking.answer(line, explain=True)[0], asking.explained)
        return asking
    name, _, rest = line[1:].partition(" ")
    if name not in COMMANDS:
        raise ConfigError(f"there is no :{name}; :help lists what there is")
    changed = COMMANDS[name](asking, rest.strip())
    changed.ready()  # a workflow that this index has not is told here, and is not kept
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
    if asking.options.feedback is not None and word != "hybrid":
        raise ConfigError("--feedback is the hybrid's, and this prompt was opened with it")
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
    """What was typed; empty where Ctrl-C took it back, None at the end."""
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
    """Where the questions of earlier prompts are: in the folder that the system has for such things."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "counterpoint" / "history"


@contextmanager
def _history() -> Iterator[None]:
    """Keys that edit the line and bring earlier questions back. Without readline, or a place for it, none."""
    try:
        import readline
    except ImportError:  # Windows, whose console does it by itself
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
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))  # questions are nobody else's
            readline.write_history_file(path)
