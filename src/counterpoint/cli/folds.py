"""`counterpoint folds`: split the queries of a small collection for cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.judgements import judgements_of
from counterpoint.cli.options import Split
from counterpoint.escapes import escaped

__all__ = ["folds"]


def folds(
    collection: Annotated[str, typer.Argument(help="Collection with judgements, or a qrels file")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the folds to this file")],
    number: Annotated[int, typer.Option("--folds", min=3, help="Set the number of folds")] = 5,
    seed: Annotated[int, typer.Option(help="Set the seed of the split into folds")] = 0,
    split: Split = None,
    json: Json = False,
) -> None:
    """Split the judged queries of COLLECTION into folds for training, validation and test."""
    from counterpoint.measure import split_folds, write_folds

    judged = judgements_of(collection, split)
    made = split_folds(judged.qrels, number, seed)
    write_folds(made, output, seed=seed)
    tested = [len(fold.test) for fold in made]
    queries = sum(tested)
    emit(
        {"output": str(output), "split": judged.split, "queries": queries, "seed": seed, "tested": tested},
        lambda: escaped(f"{output}: {queries} queries in {number} folds of {min(tested)} to {max(tested)}"),
        json,
    )
