"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from counterpoint.index import Index
    from counterpoint.model import Model
    from counterpoint.search import SearchSettings

__all__ = [
    "FusionName",
    "IndexFolder",
    "ModelName",
    "Weights",
    "WorkflowName",
    "model_of",
    "remembered_name",
    "settings_of",
    "weights_of",
]

IndexFolder = Annotated[
    Path, typer.Argument(help="Folder that `counterpoint index` wrote.", show_default=False)
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", help="Where the model is now, if not where it was when the index was built."),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help='Weights of the hybrid\'s parts, as in "lexical=1 mean=1 words=2".', show_default=False
    ),
]
FusionName = Annotated[
    str | None,
    typer.Option(
        "--fusion",
        help="How parts are made comparable: ceiling (the default), min-max, z-score, rrf or none.",
        show_default=False,
    ),
]
WorkflowName = Annotated[
    str, typer.Option("--workflow", "-w", help="hybrid, lexical, dense, words or dense-words.")
]


def model_of(index: Index, name: str | None, workflow: str) -> Model | None:
    """The model that an index needs for a workflow: the one named, else the one it remembers."""
    from counterpoint.search import LEXICAL

    if index.manifest.model is None or workflow == LEXICAL:
        return None
    from counterpoint.model import load_model  # brings torch with it

    return load_model(name or _remembered(index))


def settings_of(index: Index, weights: str | None, fusion: str | None) -> SearchSettings:
    """The index's own search settings, changed as asked."""
    from counterpoint.errors import ConfigError
    from counterpoint.search import LEXICAL, SearchSettings

    settings = SearchSettings.for_index(index)
    if weights is not None:
        settings = replace(settings, weights=weights_of(weights, [LEXICAL, *index.layouts]))
    if fusion is None:
        return settings
    if fusion == "ceiling":
        return replace(settings, scale="ceiling", normalise="none", method="convex")
    plain = replace(settings, scale="none", normalise="none", method="convex")
    if fusion == "rrf":
        return replace(plain, method="rrf")
    if fusion in ("none", "min-max", "z-score"):
        return replace(plain, normalise=fusion)
    raise ConfigError(f"unknown fusion {fusion!r}; choose ceiling, min-max, z-score, rrf or none")


def weights_of(text: str, names: Sequence[str]) -> dict[str, float]:
    """Parse "name=number name=number".

    Raises:
        ConfigError: listing every entry that is not of that form or names nothing known.
    """
    from counterpoint.errors import ConfigError

    weights, faults = {}, []
    for entry in text.replace(",", " ").split():
        name, _, number = entry.rpartition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            faults.append(f"weights: expected name=number, found {entry!r}")
            continue
        if name not in names:
            faults.append(f"weights: nothing is named {name!r}; there are {', '.join(names)}")
    if faults or not weights:
        raise ConfigError(*faults or ["weights: none given"])
    return weights


def remembered_name(source: str, index: Path) -> str:
    """How an index refers to its model: a folder by its path relative to the index, anything else by name."""
    if not Path(source).is_dir():
        return source
    return "./" + Path(os.path.relpath(source, index)).as_posix()


def _remembered(index: Index) -> str:
    """The inverse: where the manifest says the model is; both may have moved together."""
    name = str((index.manifest.model or {})["name"])
    return str((index.folder / name).resolve()) if name.startswith("./") else name
