"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from counterpoint.index import Index
    from counterpoint.model import Model

__all__ = ["IndexFolder", "ModelName", "WorkflowName", "model_of"]

IndexFolder = Annotated[
    Path, typer.Argument(help="Folder that `counterpoint index` wrote.", show_default=False)
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", help="Where the model is now, if not where it was when the index was built."),
]
WorkflowName = Annotated[
    str, typer.Option("--workflow", "-w", help="hybrid, lexical, dense, words or dense-words.")
]


def model_of(index: Index, name: str | None, workflow: str) -> Model | None:
    """The model that an index needs for a workflow: the one named, else the one it remembers."""
    from counterpoint.model import load_model
    from counterpoint.search import LEXICAL

    if index.manifest.model is None or workflow == LEXICAL:
        return None
    return load_model(name or remembered(index))


def remembered(index: Index) -> str:
    """The model's name in the manifest; a relative path is relative to the index, so both can be moved."""
    name = str((index.manifest.model or {})["name"])
    return str((index.folder / name).resolve()) if name.startswith((".", "/")) else name
