"""The group of all commands; each is imported only when it is typed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from counterpoint.cli.catalogue import COMMANDS, GROUPS

__all__ = ["Commands", "Interrupted"]


class Interrupted(Exception):
    """Ctrl-C, with the outermost writer's note on its file or folder."""


@final
class Commands(TyperGroup):
    """The commands of the catalogue. An interrupt carries a note on what is left on disk."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.commands = _Catalogue()  # type: ignore[assignment]  # read as a mapping, and never written to

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, in the order of the catalogue."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that was typed; suggest a similar name for an unknown one."""
        close = [] if args[0] in COMMANDS else difflib.get_close_matches(args[0], COMMANDS, n=1)
        if close and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one list per group; lines come from the catalogue, so that help imports no command."""
        width = max(map(len, COMMANDS))
        for group, entries in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), entry.line) for name, entry in entries.items()])

    def invoke(self, ctx: Any) -> object:
        """Run the command; turn Ctrl-C into `Interrupted`."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(*getattr(interrupt, "__notes__", [])[-1:]) from interrupt


@final
class _Catalogue(Mapping[str, Any]):
    """Commands by name; looking one up imports it."""

    def __getitem__(self, name: str) -> Any:
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def _load(name: str) -> Any:
    entry = COMMANDS[name]
    module, _, attribute = entry.place.partition(":")
    found = getattr(import_module(f"counterpoint.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        app.command(name=name)(found)
        found = app
    command = get_command(found)
    command.name = name
    for one in (command, *getattr(command, "commands", {}).values()):  # whichever is loaded first
        one.context_settings.setdefault("help_option_names", ["-h", "--help"])
    if entry.examples:
        command.epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in entry.examples)])
    return command
