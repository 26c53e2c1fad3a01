"""`counterpoint fuse`: one run from several."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.outputs import check_outputs
from counterpoint.escapes import escaped

__all__ = ["fuse"]


def fuse(
    runs: Annotated[list[Path], typer.Argument(help="TREC runs, plain or .gz.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)],
    method: Annotated[
        Literal["rrf", "convex"], typer.Option(help="Add reciprocal ranks, or weighted scores.")
    ] = "rrf",
    normalise: Annotated[
        Literal["none", "min-max", "z-score"],
        typer.Option(help="Scores of a query, before --method convex adds them."),
    ] = "none",
    missing: Annotated[
        Literal["error", "min", "zero"] | None,
        typer.Option(
            help="A document that a run lacks: refuse (convex unless given), the run's lowest score or rank, "
            "or nothing (rrf unless given).",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help='By file name: "bm25.trec=1 dense.trec=0.5"; 1 each unless given.', show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Fuse RUNS into one."""
    from counterpoint.errors import ConfigError
    from counterpoint.search import Fusion, Run, fuse_runs
    from counterpoint.search.settings import parse_weights

    if method == "rrf" and normalise != "none":
        raise ConfigError("--method rrf looks at ranks only; leave --normalise out, or add --method convex")
    check_outputs({"-o": output}, runs)
    named = _named(runs)
    shares = dict.fromkeys(named, 1.0) if weights is None else parse_weights(weights, list(named))
    if left := sorted(named.keys() - shares.keys()):
        raise ConfigError(f"--weights: give every run a weight; there is none for {left[0]}")
    absent = missing or ("zero" if method == "rrf" else "error")
    fusion = Fusion(weights=shares, method=method, normalise=normalise, missing=absent)
    fused = fuse_runs({name: Run.read(path) for name, path in named.items()}, fusion)
    fused.write(output)
    emit(
        {"output": str(output), "queries": len(fused), "fusion": fusion.to_dict()},
        lambda: escaped(f"{output}: {len(fused)} queries from {len(shares)} runs by {fusion.method}"),
        json,
    )


def _named(runs: list[Path]) -> dict[str, Path]:
    """Runs by their file names; those of one name by their paths."""
    from counterpoint.errors import ConfigError

    count = Counter(path.name for path in runs)
    named = {path.name if count[path.name] == 1 else str(path): path for path in runs}
    if len(named) < len(runs):
        raise ConfigError("a run is named twice; name each of them once")
    return named
