"""`counterpoint fit`: fit an unsupervised map to a model's vectors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterpoint.cli.console import Json, emit, note, warned
from counterpoint.cli.progress import progress
from counterpoint.cli.sampling import drawn
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.transform import Transform

__all__ = ["fit"]

Method = Literal["whitening", "nice", "glow", "normalise", "centre"]
OF_METHODS = {
    "rank": ("whitening", "nice", "glow"),
    "shrinkage": ("whitening",),
    "power": ("whitening",),
    "steps": ("nice", "glow"),
    "level": ("whitening", "nice", "glow", "normalise"),
}
MOST_QUERIES = 0.2  # share of the texts; with 10 %, maps of small collections ranked slightly better
MANY_QUERIES = (
    "{:.0%} of the texts are queries, so the mean lies between those of queries and documents. If the two "
    "sides lie far apart, documents still form a cone about it. Without --queries, it is the documents' mean"
)


def fit(
    method: Annotated[Method, typer.Argument(help="Map to fit")],
    model: Annotated[str, typer.Argument(help="Model name, folder or hub id")],
    collection: Annotated[str, typer.Argument(help="Collection of the texts to fit it to")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the model to this folder")],
    on: Annotated[str | None, typer.Option(help="Map this vector set; required if there are several")] = None,
    level: Annotated[
        Literal["token", "sequence"] | None,
        typer.Option(help="Map tokens before pooling, or pooled vectors (default)"),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=1, help="Keep this many principal components (default: all)")
    ] = None,
    shrinkage: Annotated[
        str | None, typer.Option(help="Whitening: shrink the covariance by 0 to 1, or oas")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Flows: limit the training steps (default: 1000)")
    ] = None,
    power: Annotated[
        float | None,
        typer.Option(help="Whitening: set the exponent of variances (default: -0.5)", min=-0.5, max=0.0),
    ] = None,
    documents: Annotated[
        int, typer.Option(min=0, help="Fit to this many random documents; 0 takes all")
    ] = 10_000,
    queries: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="Fit to the queries of this split as well")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Set the seed of the sample and of flows")] = 0,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing folder")] = False,
    json: Json = False,
) -> None:
    """Fit whitening or a normalising flow to MODEL's vectors of COLLECTION; save MODEL with it.

    `centre` fits nothing new: the maps that MODEL already has will subtract the mean of COLLECTION.

    --rank keeps the leading principal directions; a flow is applied after the rotation to them. --shrinkage
    is the share of the covariance that becomes a multiple of the identity, 0 by default; 'oas' estimates it
    for the number of vectors. --power -0.5 makes the variances equal, -0.25 goes half the way, 0 only centres
    and rotates. --level applies to sets of one vector per text.
    """
    from counterpoint.folders import SAVED_PART, check_replaceable
    from counterpoint.learn import FitTexts, fit_transform, fitted_dim, recentre_transform
    from counterpoint.loading import load_model

    given = {"rank": rank, "shrinkage": shrinkage, "power": power, "steps": steps, "level": level}
    for name in (name for name, value in given.items() if value is not None):
        if method not in OF_METHODS[name]:
            raise ConfigError(f"--{name} is for {' and '.join(OF_METHODS[name])}; leave it out")
    scaling = {"shrinkage": _share(shrinkage), "power": -0.5 if power is None else power}
    if output.exists() and not overwrite:
        raise ArtifactError("already exists; choose another folder or add --overwrite", path=output)
    check_replaceable(output, SAVED_PART)
    loaded = load_model(model)
    chosen = on or next(iter(loaded.sets))
    if on is None and len(loaded.sets) > 1:
        raise ConfigError(f"the model has the vector sets {', '.join(loaded.sets)}; choose one with --on")

    # Report what cannot be fitted before the slow part.
    made: list[Any] = []
    if method != "centre":
        made += _declared(method, fitted_dim(loaded, chosen, level), rank, scaling, steps, seed)
    known = chosen in loaded.sets  # if not, recentring reports it
    plain = known and not (loaded.has_unit_length(chosen) or loaded.is_weighed(chosen))
    texts, more = _texts(collection, documents, queries, seed)
    if known and loaded.sets[chosen].pooled and level != "token":
        _check_rows(made, len(FitTexts(texts, more).divided()[0]))
    started = time.perf_counter()
    with (
        warned(),
        progress("encoding", "texts", len(texts) + len(more)) as encoded,
        progress("training", "steps") as trained,
    ):
        fitted = FitTexts(texts, more, encoded)
        if method == "centre":
            recentre_transform(loaded, chosen, fitted)
        else:
            fit_transform(
                loaded, chosen, lambda dim: made, fitted, level, lambda step, total, bits: trained(step)
            )
    mapped = level or ("sequence" if loaded.sets[chosen].pooled else "token")
    if method != "normalise" and mapped == "sequence" and len(more) > MOST_QUERIES * len(fitted):
        note(MANY_QUERIES.format(len(more) / len(fitted)))
    if plain and method not in ("normalise", "centre"):
        note(f"the vectors of {chosen!r} did not have length 1; now they do, so inner products are cosines")
    loaded.save(output, overwrite=overwrite)
    result = {
        "output": str(output), "method": method, "on": chosen,
        "level": None if method == "centre" else mapped,
        "documents": len(texts), "queries": len(more),
        "vectors": None if method in ("normalise", "centre") else int(made[-1].count_),
        "components": loaded.sets[chosen].dim, "kept": made[-1].kept if method == "whitening" else None,
        **_bits(made), "seconds": round(time.perf_counter() - started, 2),
    }  # fmt: skip
    emit(result, lambda: _text(result), json)


def _share(shrinkage: str | None) -> float | Literal["oas"]:
    if shrinkage is None or shrinkage == "oas":
        return shrinkage or 0.0
    try:
        return float(shrinkage)
    except ValueError as error:
        raise ConfigError(
            f"--shrinkage: expected a share from 0 to 1 or 'oas', found {shrinkage!r}"
        ) from error


def _declared(
    method: Method, dim: int, rank: int | None, scaling: Mapping[str, Any], steps: int | None, seed: int
) -> list[Transform]:
    from counterpoint.transform import FlowTraining, Glow, Nice, Normalise, Whitening

    training = FlowTraining(seed=seed) if steps is None else FlowTraining(seed=seed, steps=steps)
    if method == "normalise":
        return [Normalise()]
    if method == "whitening":
        return [Whitening(dim, rank=rank, **scaling)]
    flow = Nice(rank or dim, fitting=training) if method == "nice" else Glow(rank or dim, fitting=training)
    return [flow] if rank is None else [Whitening(dim, rank=rank, power=0.0), flow]


def _check_rows(made: Sequence[Transform], rows: int) -> None:
    """Refuse a flow of more directions than this number of vectors can vary in."""
    from counterpoint.transform import Flow

    flow = made[-1] if len(made) > 1 else None  # alone it is fitted to all components, and warns
    if isinstance(flow, Flow) and flow.dim > (most := rows - 1):
        possible = most // flow.divisor * flow.divisor
        choose = f"choose --rank {possible} or lower, or fit on" if possible else "fit on"
        raise ConfigError(
            f"--rank {flow.dim}: {rows:,} vectors vary in {most:,} directions at most; {choose} more texts"
        )


def _bits(made: Sequence[Transform]) -> dict[str, float | int | None]:
    """A flow's bits per dimension on training rows and on held-out rows; None without a flow."""
    from counterpoint.transform import Flow

    bits = made[-1].bits if made and isinstance(made[-1], Flow) else None
    return {
        "bits_per_dimension": None if bits is None else bits.training,
        "held_out_bits_per_dimension": None if bits is None else bits.held_out,
        "held_out": None if bits is None else bits.rows_held_out,
    }


def _texts(source: str, count: int, split: str | None, seed: int) -> tuple[list[str], list[str]]:
    import numpy as np

    from counterpoint.data import open_collection

    collection = open_collection(source)
    queries = [] if split is None else list(collection.queries(split).values())
    rng = np.random.default_rng(seed)
    return [document.full_text for document in drawn(collection.documents(), count, rng)], queries


def _text(result: dict[str, Any]) -> str:
    facts = [f"{result['documents']:,} documents"]
    facts += [f"{result['queries']:,} queries"] if result["queries"] else []
    facts += [f"{result['vectors']:,} vectors"] if result["vectors"] is not None else []
    if result["kept"] is not None:
        facts.append(f"{result['kept']} directions")
    if result["bits_per_dimension"] is not None:
        held_out = result["held_out_bits_per_dimension"]
        other = "too few to hold some out"
        if held_out is not None:
            other = f"{held_out:.3f} on {result['held_out']:,} held-out vectors"
        facts.append(f"{result['bits_per_dimension']:.3f} bits per component ({other})")
    level = "" if result["level"] is None else f" ({result['level']})"
    lines = (
        f"{result['output']}: {result['method']} on {result['on']}{level}, "
        f"{result['components']} components, from {', '.join(facts)} in {result['seconds']:.1f} s",
        f"Index with it: counterpoint index SOURCE -o INDEX --model {result['output']}",
    )
    return "\n".join(map(escaped, lines))
