"""`counterpoint fuse`: fuse several runs into one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.cli.outputs import check_outputs
from counterpoint.errors import ConfigError
from counterpoint.escapes import escaped

__all__ = ["fuse"]


def fuse(
    runs: Annotated[list[Path], typer.Argument(help="TREC runs, plain or .gz")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the fused run to this file")],
    method: Annotated[
        Literal["rrf", "convex"], typer.Option(help="Add reciprocal ranks, or weighted scores")
    ] = "rrf",
    normalise: Annotated[
        Literal["none", "min-max", "z-score"],
        typer.Option(help="With convex: normalise the scores of each query first"),
    ] = "none",
    missing: Annotated[
        Literal["error", "min", "zero"] | None,
        typer.Option(help="Choose what a run adds for a document that it lacks"),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help='Weight runs by file name: "bm25.trec=1 dense.trec=0.5"')
    ] = None,
    json: Json = False,
) -> None:
    """Fuse RUNS into one, by reciprocal ranks (rrf) or weighted scores (convex).

    --missing says what a run adds for a document that it lacks. error refuses (the default of convex), min
    adds the run's lowest score or rank, zero adds nothing (the default of rrf). Every weight is 1 by default.
    """
    from counterpoint.search import Fusion, Run, fuse_runs
    from counterpoint.search.settings import parse_weights

    if method == "rrf" and normalise != "none":
        raise ConfigError("--method rrf uses ranks only; leave --normalise out, or add --method convex")
    check_outputs({"-o": output}, runs)
    named = _named(runs)
    shares = dict.fromkeys(named, 1.0) if weights is None else parse_weights(weights, list(named))
    if left := sorted(named.keys() - shares.keys()):
        raise ConfigError(f"--weights: no weight for {left[0]}; give every run one")
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
    """Runs by file name, or by path where several files have the same name."""
    count = Counter(path.name for path in runs)
    named = {path.name if count[path.name] == 1 else str(path): path for path in runs}
    if len(named) < len(runs):
        raise ConfigError("a run is named twice; name each of them once")
    return named
