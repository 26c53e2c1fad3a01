"""Options of the commands that read documents: where from, and how."""

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

Source = Annotated[
    str,
    typer.Argument(
        help="Folder, .jsonl, .csv, .tsv, .json, any text, '-', ir_datasets:ID, stdlib:",
        show_default=False,
    ),
]
PassageWords = Annotated[
    int | None,
    typer.Option(
        min=0,
        show_default=False,
        help="Cut documents into passages of at most this many words; 0 keeps them whole. Unless given, "
        "files are cut and documents of a collection are not, and what is added is cut as the index was.",
    ),
]
IdField = Annotated[
    str | None,
    typer.Option("--id", help="Field of the id (CSV, TSV, JSON, JSON Lines).", show_default=False),
]
TitleField = Annotated[str | None, typer.Option("--title", help="Field of the title.", show_default=False)]
TextField = Annotated[str | None, typer.Option("--text", help="Field of the text.", show_default=False)]
Include = Annotated[
    list[str] | None,
    typer.Option(help="Read only files like this ('*.md'); repeatable.", show_default=False),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="Leave out files and folders like this; repeatable.", show_default=False),
]
Gitignore = Annotated[bool, typer.Option(help="Leave out what .gitignore names.")]
Lenient = Annotated[
    bool | None,
    typer.Option(help="Skip bad input (folders: default), or stop at it.", show_default=False),
]


Compact = Annotated[
    bool, typer.Option("--compact/--no-compact", help="Join segments afterwards where that is due.")
]


def given(values: list[str] | None) -> tuple[str, ...] | None:
    """A repeatable option as settings have it."""
    return None if values is None else tuple(values)
