"""Options that several commands share."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from counterpoint.index import Index
    from counterpoint.model import Model
    from counterpoint.search import SearchSettings

__all__ = [
    "Exhaustive",
    "Feedback",
    "FusionName",
    "IndexFolder",
    "MaybeWorkflow",
    "ModelName",
    "Weights",
    "WorkflowName",
    "cutoffs_of",
    "model_of",
    "remembered_name",
    "settings_of",
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
Feedback = Annotated[
    str | None,
    typer.Option(
        "--feedback",
        help="What the best documents count for in the hybrid, beside all parts as 1, and how many are taken "
        '("0.1,5"); 0 for none.',
        show_default=False,
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
Exhaustive = Annotated[
    bool,
    typer.Option("--exhaustive", help="Look at every vector, even where the index has a graph (--ann)."),
]
WorkflowName = Annotated[
    str, typer.Option("--workflow", "-w", help="hybrid, lexical, dense, words, dense-words or words-dense.")
]
MaybeWorkflow = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        "-w",
        help="hybrid (unless given), lexical, dense, words, dense-words or words-dense.",
        show_default=False,
    ),
]


CUTOFF = re.compile(r"0*[1-9][0-9]{0,8}")


def cutoffs_of(text: str, option: str) -> list[int]:
    """Cutoffs as they are typed (`10,100`), rising, each once."""
    from counterpoint.errors import ConfigError

    words = text.replace(",", " ").split()
    if not words or not all(CUTOFF.fullmatch(word) for word in words):
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise ConfigError(
            f"{option}: expected whole numbers from 1 (of at most nine digits) separated by commas, found "
            f"{shown!r}"
        )
    return sorted(set(map(int, words)))


def model_of(index: Index, name: str | None, workflow: str) -> Model | None:
    """The model that an index needs for a workflow: the one named, else the one it remembers."""
    from counterpoint.search import LEXICAL

    if index.manifest.model is None or workflow == LEXICAL:
        return None
    from counterpoint.model import load_model  # brings torch with it

    model = load_model(name or _remembered(index))
    gate = index.manifest.settings.get("gate")
    return model if gate is None else model.close_gates(gate)


def settings_of(
    index: Index,
    weights: str | None,
    fusion: str | None,
    exhaustive: bool = False,
    feedback: str | None = None,
    workflow: str = "hybrid",
) -> SearchSettings:
    """The index's own search settings, changed as asked.

    Raises:
        ConfigError: something asked for is malformed, or feedback cannot be had.
    """
    from counterpoint.errors import ConfigError
    from counterpoint.search import LEXICAL, SearchSettings
    from counterpoint.search.settings import parse_feedback, parse_weights

    settings = SearchSettings.for_index(index)
    settings = replace(settings, exhaustive=exhaustive or settings.exhaustive)
    if feedback is not None:
        if workflow != "hybrid":
            raise ConfigError(f"--feedback is the hybrid's; leave it or --workflow {workflow} out")
        settings = replace(settings, **parse_feedback(feedback))
        if settings.feedback and not any(layout.pooled for layout in index.layouts.values()):
            raise ConfigError("--feedback goes by one vector a text, and this index has no such set")
    if weights is not None:
        settings = replace(settings, weights=parse_weights(weights, [LEXICAL, *index.layouts]))
    return settings if fusion is None else settings.with_fusion(fusion)


def remembered_name(source: str, index: Path) -> str:
    """How an index refers to its model: a folder by its path relative to the index, anything else by name."""
    if not Path(source).is_dir():
        return source
    return "./" + Path(os.path.relpath(source, index)).as_posix()


def _remembered(index: Index) -> str:
    """The inverse: where the manifest says the model is; both may have moved together."""
    name = str((index.manifest.model or {})["name"])
    return str((index.folder / name).resolve()) if name.startswith("./") else name
