"""`counterpoint fuse`: one run from several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.escapes import escaped

__all__ = ["fuse"]


def fuse(
    runs: Annotated[list[Path], typer.Argument(help="TREC runs, plain or .gz.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)],
    method: Annotated[
        Literal["rrf", "convex"],
        typer.Option(help="Add reciprocal ranks, or weighted scores."),
    ] = "rrf",
    normalise: Annotated[
        Literal["none", "min-max", "z-score"],
        typer.Option(help="With convex: scores of a query, before they are added."),
    ] = "none",
    missing: Annotated[
        Literal["error", "min", "zero"] | None,
        typer.Option(
            help="A document that a run lacks: refuse it, count it as the run's lowest, or add nothing; zero "
            "with rrf and error with convex unless given.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help='By file name: "bm25.trec=1 dense.trec=0.5"; all 1 unless given.')
    ] = None,
    json: Json = False,
) -> None:
    """Fuse RUNS into one."""
    from counterpoint.errors import ConfigError
    from counterpoint.search import Fusion, Run, fuse_runs
    from counterpoint.search.settings import parse_weights

    names = [path.name for path in runs]
    if len(set(names)) < len(names):
        raise ConfigError("runs are told apart by their file names, and two of these are equal")
    shares = dict.fromkeys(names, 1.0) if weights is None else parse_weights(weights, names)
    if shares.keys() != set(names):
        raise ConfigError(
            f"give every run a weight; there is none for {sorted(set(names) - shares.keys())[0]}"
        )
    fusion = Fusion(weights=shares, method=method, normalise=normalise, missing=missing)
    fused = fuse_runs({path.name: Run.read(path) for path in runs}, fusion)
    fused.write(output)
    emit(
        {"output": str(output), "queries": len(fused), "fusion": fusion.to_dict()},
        lambda: escaped(f"{output}: {len(fused)} queries from {len(shares)} runs by {fusion.method}"),
        json,
    )
