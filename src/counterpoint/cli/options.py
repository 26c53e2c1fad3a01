"""Options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from counterpoint.cli.complete import models, workflows
from counterpoint.library.options import SearchOptions

__all__ = [
    "Adapt",
    "BackendName",
    "Exhaustive",
    "Feedback",
    "FusionName",
    "IndexFolder",
    "MaybeWorkflow",
    "ModelName",
    "Probes",
    "Weights",
    "Where",
    "WorkflowName",
    "asked_of",
    "cutoffs_of",
]

IndexFolder = Annotated[
    Path, typer.Argument(help="Folder that `counterpoint index` wrote.", show_default=False)
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        autocompletion=models,
        help="Where the model is now, if not where it was when the index was built.",
    ),
]
BackendName = Annotated[
    Literal["auto", "onnx", "torch"],
    typer.Option(
        "--backend",
        help="Encode queries with: onnx (exported with the index), torch, or auto.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help='Weights of the hybrid\'s parts, as in "lexical=1 mean=1 words=2".', show_default=False
    ),
]
Adapt = Annotated[
    bool | None,
    typer.Option(
        "--adapt/--no-adapt",
        help="Let weights follow each query, as the index says; not with --weights unless asked for.",
        show_default=False,
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
    typer.Option("--exhaustive", help="Look at every vector; ignore sketches, graphs and lists."),
]
Probes = Annotated[
    int | None,
    typer.Option(
        "--probes",
        min=1,
        help="Lists looked at for each query token; the index's own unless given.",
        show_default=False,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only documents whose metadata meets this: \"year >= 2020 and lang in ('en', 'de')\".",
        show_default=False,
    ),
]
WorkflowName = Annotated[
    str,
    typer.Option(
        "--workflow",
        "-w",
        help="hybrid, lexical, dense, words, dense-words or words-dense.",
        autocompletion=workflows,
    ),
]
MaybeWorkflow = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        "-w",
        autocompletion=workflows,
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


def asked_of(
    workflow: str,
    weights: str | None = None,
    fusion: str | None = None,
    feedback: str | None = None,
    exhaustive: bool = False,
    adapt: bool | None = None,
) -> SearchOptions:
    """What was typed, as the library takes it.

    Raises:
        ConfigError: options that exclude each other.
    """
    from counterpoint.errors import ConfigError

    if feedback is not None and workflow != "hybrid":
        raise ConfigError(f"--feedback is the hybrid's; leave it or --workflow {workflow} out")
    return SearchOptions(
        workflow=workflow,
        weights=weights,
        adapt=adapt,
        fusion=fusion,
        feedback=feedback,
        exhaustive=exhaustive,
    )
