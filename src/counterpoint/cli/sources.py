"""Options of the commands that read documents."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Compact",
    "Exclude",
    "Gitignore",
    "IdField",
    "Include",
    "Lenient",
    "PassageWords",
    "Source",
    "TextField",
    "TitleField",
    "given",
]

Source = Annotated[str, typer.Argument(help="Folder, file, collection, - (stdin), ir_datasets:ID, stdlib:")]
PassageWords = Annotated[
    int | None, typer.Option(min=0, help="Limit passages to this many words; 0 keeps documents whole")
]
IdField = Annotated[str | None, typer.Option("--id", help="Name the id field (CSV, TSV, JSON, JSON Lines)")]
TitleField = Annotated[str | None, typer.Option("--title", help="Name the title field")]
TextField = Annotated[str | None, typer.Option("--text", help="Name the text field")]
Include = Annotated[
    list[str] | None, typer.Option(help="Read only files like this, as in '*.md' (repeatable)")
]
Exclude = Annotated[list[str] | None, typer.Option(help="Skip files and folders like this (repeatable)")]
Gitignore = Annotated[bool, typer.Option(help="Skip what .gitignore names")]
Lenient = Annotated[bool | None, typer.Option(help="Skip bad input (default for folders), or stop at it")]


Compact = Annotated[bool, typer.Option("--compact/--no-compact", help="Merge segments afterwards if due")]


def given(values: list[str] | None) -> tuple[str, ...] | None:
    """Convert a repeatable option to a tuple for settings."""
    return None if values is None else tuple(values)
