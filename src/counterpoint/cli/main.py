"""The `counterpoint` program: dispatch, error messages and exit codes."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from traceback import walk_tb
from typing import Annotated, Any

import typer

from counterpoint.cli.console import complain, quietly
from counterpoint.cli.lazy import Commands, Interrupted
from counterpoint.cli.streams import guard_streams, show_traceback
from counterpoint.errors import ConfigError, CounterpointError
from counterpoint.escapes import escaped, escaped_lines
from counterpoint.memory import keep_freed_memory

__all__ = ["app", "main"]

# Recent versions of typer carry a copy of click, so the class is found through one of typer's own names.
UsageMistake: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
INTERRUPTED = 130
NAMED = 5  # classes in a message
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of stdout: for our own files `writing` reports it
THE_SYSTEMS = (  # errors of a file that the user named: no permission, a loop of links, …
    errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EIO, errno.EMFILE,
    errno.ESTALE,
)  # fmt: skip

app = typer.Typer(
    name="counterpoint",
    cls=Commands,
    help="Neural retrieval whose parts complement each other: index, search, explain, evaluate.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # plain help: renders in a third of the time, and pipes well
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from counterpoint.version import version

        typer.echo(f"counterpoint {version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print only results and errors (valid at any position)")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks (valid at any position)")] = False,
) -> None:
    """Global options."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 2 for the user's mistakes, 1 for ours."""
    given = sys.argv[1:] if arguments is None else arguments
    end = given.index("--") if "--" in given else len(given)  # words after it are no options
    options, rest = given[:end], given[end:]
    debug, quiet = "--debug" in options, "--quiet" in options
    words = [*(word for word in options if word not in ("--debug", "--quiet")), *rest]
    if arguments is not None:
        with quietly(quiet):
            return _run(words, debug)
    guard_streams()  # only when run as a program, which owns the process
    if not {"--help", "-h"} & set(options):
        keep_freed_memory()
    try:
        with quietly(quiet):
            code = _run(words, debug)
    except Exception as error:  # as the interpreter would do, with the message escaped
        show_traceback(error)
        code = 1
    sys.exit(code)


def _run(arguments: list[str], debug: bool) -> int:
    try:
        result = app(arguments, prog_name="counterpoint", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except UsageMistake as error:
        _show(error)
        return 2
    except CounterpointError as error:
        return _users(error, debug, *(error.faults if isinstance(error, ConfigError) else [str(error)]))
    except Interrupted as interrupt:
        _complain("; ".join(["interrupted", *interrupt.args]))
        return INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output closed the pipe, as `head` does
        sys.stderr.close()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and (said := _of_the_system(error)):
            return _users(error, debug, said)
        if place := _in_their_code(error):
            return _users(error, debug, f"{place}: {type(error).__name__}: {error}")
        if debug:
            raise
        _complain(f"{type(error).__name__}: {error}", _whose_bug())
        return 1


def _whose_bug() -> str:
    from counterpoint.config import others

    report = "Please report it with the output of the same command with --debug."
    if not (own := others()):
        return f"This is a bug in counterpoint. {report}"
    named = ", ".join(own[:NAMED]) + (", …" if len(own) > NAMED else "")
    return (
        f"This is a bug in counterpoint, unless a class of your own ({named}) breaks its contract; check it "
        f"with counterpoint.testing (docs/extend.md). {report}"
    )


def _in_their_code(error: Exception) -> str | None:
    """Where a recipe file, or a package with parts, failed; None if the failure is not in their code."""
    from importlib.metadata import entry_points

    from counterpoint.config import PARTS, RECIPE_MODULE

    packages = {point.module.partition(".")[0] for point in entry_points(group=PARTS)}
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(RECIPE_MODULE) or module.partition(".")[0] in packages:
            return f"{frame.f_code.co_filename}:{line}"
        if module.startswith("counterpoint.") and frame.f_code.co_name != "__getattr__":
            return None
    return None


def _users(error: Exception, debug: bool, *message: str) -> int:
    """Print an error that the user can mend, after its traceback with --debug; return the exit code."""
    if debug:
        show_traceback(error)
    _complain(*message)
    return 2


def _of_the_system(error: OSError) -> str | None:
    """The message for a system error that the user can fix; None if the mistake is ours."""
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}" if error.errno in THE_SYSTEMS else None
    if error.errno not in NO_ROOM:
        return None
    with suppress(OSError):  # else the interpreter writes the rest at exit and fails again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return f"the output cannot be written: {error.strerror}. Free some disk space"


def _complain(message: str, *more: str) -> None:
    complain(f"error: {message}", *more)


def _show(mistake: Any) -> None:
    """Print typer's message for a usage mistake; it may quote what was typed, so escape it."""
    if type(mistake).__name__ != "NoArgsIsHelpError":  # its message is the help
        mistake.message = escaped(mistake.message)
    shown = io.StringIO()
    mistake.show(file=shown)
    print(escaped_lines(shown.getvalue()), end="", file=sys.stderr, flush=True)
