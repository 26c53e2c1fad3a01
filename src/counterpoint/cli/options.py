"""Options that several commands share: of searching, and of reading documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.complete import measures, models, workflows
from counterpoint.errors import ConfigError
from counterpoint.library.options import Backend

__all__ = [
    "Adapt",
    "BackendName",
    "Compact",
    "Exclude",
    "Exhaustive",
    "Feedback",
    "FusionName",
    "Gitignore",
    "IdField",
    "Include",
    "IndexFolder",
    "Lenient",
    "MaybeWorkflow",
    "Measures",
    "ModelName",
    "PassageWords",
    "Probes",
    "Source",
    "Split",
    "TextField",
    "TitleField",
    "Weights",
    "Where",
    "WorkflowName",
    "condition_of",
    "cutoffs_of",
]

IndexFolder = Annotated[Path, typer.Argument(help="Folder that `counterpoint index` wrote")]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model", autocompletion=models, help="Load the model from here, if it moved since indexing"
    ),
]
Measures = Annotated[
    str, typer.Option(help="Set the measures, by their usual names", autocompletion=measures)
]
Split = Annotated[str | None, typer.Option(help="Choose the split (default: test, or the only one)")]
BackendName = Annotated[
    Backend,
    typer.Option("--backend", help="Encode queries in 8 bits (int8), in float32 (onnx), or with torch"),
]
Weights = Annotated[str | None, typer.Option(help='Weight the hybrid\'s parts, as in "lexical=1 mean=1"')]
Adapt = Annotated[
    bool | None,
    typer.Option("--adapt/--no-adapt", help="Adapt weights to each query (default: as the index says)"),
]
Feedback = Annotated[
    str | None, typer.Option("--feedback", help='Weight and documents of pseudo-relevance feedback ("0.1,5")')
]
FusionName = Annotated[
    str | None, typer.Option("--fusion", help="Fuse by ceiling (default), min-max, z-score, rrf or none")
]
Exhaustive = Annotated[
    bool, typer.Option("--exhaustive", help="Score every vector; ignore sketches, graphs and lists")
]
Probes = Annotated[
    int | None,
    typer.Option("--probes", min=1, help="Set the lists probed per query token (default: the index's)"),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Filter by metadata: \"year >= 2020 and lang in ('en', 'de')\" (repeated: all must hold)",
    ),
]
WorkflowName = Annotated[
    str,
    typer.Option(
        "--workflow",
        "-w",
        help="hybrid, lexical, dense, words, dense-words or words-dense",
        autocompletion=workflows,
    ),
]
MaybeWorkflow = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        "-w",
        autocompletion=workflows,
        help="Choose the workflow of the search (default: hybrid)",
    ),
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

CUTOFF = re.compile(r"0*[1-9][0-9]{0,8}")


def cutoffs_of(text: str, option: str) -> list[int]:
    """Parse cutoffs such as `10,100`; sorted, without duplicates."""
    words = text.replace(",", " ").split()
    if not words or not all(CUTOFF.fullmatch(word) for word in words):
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise ConfigError(
            f"{option}: expected whole numbers from 1 (of at most nine digits) separated by commas, found "
            f"{shown!r}"
        )
    return sorted(set(map(int, words)))


def condition_of(where: list[str] | None) -> str | None:
    """Join the conditions of a repeated --where with `and`; None without any.

    Raises:
        ConfigError: one of several is not a condition by itself.
    """
    if not where or len(where) == 1:
        return where[0] if where else None
    from counterpoint.index.where import names_in

    for each in where:
        names_in(each)  # in parentheses, `a) or (b` would pass
    return " and ".join(f"({each})" for each in where)
